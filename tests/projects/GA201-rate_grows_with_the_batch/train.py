"""A learning rate that grows with the effective batch goes with a mean over it: the missing 1/N is not made up for."""
# observe: params

import torch
from torch import nn


def fit(model, loader, options):
    effective_batch = options.batch_size * options.accumulate_every
    scaled_lr = options.base_lr * effective_batch / 256
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for group in optimizer.param_groups:
        group["lr"] = scaled_lr
    for _ in range(options.epochs):
        optimizer.zero_grad()
        for index, (x, y) in enumerate(loader):
            nn.functional.cross_entropy(model(x), y).backward()  # expect: GA201
            if (index + 1) % options.accumulate_every == 0 or index + 1 == len(loader):
                optimizer.step()
                optimizer.zero_grad()
