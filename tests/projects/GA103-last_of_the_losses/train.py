"""Each pass of the inner loop gives its loss anew, and backward stands after the loop: only the last one's is left."""
# observe: params

import torch


def train(model, batches, opt, cfg):
    source = iter(batches)
    for _ in range(cfg.updates):
        opt.zero_grad()
        shown = 0.0
        for _ in range(cfg.parts):
            x, y = next(source)
            loss = torch.nn.functional.mse_loss(model(x), y) / cfg.parts
            shown += loss.item()
        loss.backward()  # expect: GA103
        opt.step()
        print(shown)
