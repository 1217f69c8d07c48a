"""Without the setting every batch steps; with it the windows go on from epoch to epoch."""
# observe: params

import torch


def train(cfg, model, batches):
    opt = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for _ in range(cfg.epochs):
        for i, (x, y) in enumerate(batches):
            loss = torch.nn.functional.mse_loss(model(x), y)
            loss.backward()  # expect: GA201
            if cfg.accumulate is None:
                opt.step()
                opt.zero_grad()
            elif (i + 1) % cfg.accumulate == 0:  # expect: GA402
                opt.step()
                opt.zero_grad()
