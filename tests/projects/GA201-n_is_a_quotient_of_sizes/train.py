"""N is written nowhere: the guard divides the size of a batch by that of its parts."""
# observe: params

import torch


def train(model, loader, opt, args):
    for _ in range(2):
        opt.zero_grad()
        for i, (x, y) in enumerate(loader):
            loss = torch.nn.functional.mse_loss(model(x), y)
            loss.backward()  # expect: GA201
            if (i + 1) % (args.batch_size // args.micro_batch_size) == 0:  # expect: GA403
                opt.step()
                opt.zero_grad()
