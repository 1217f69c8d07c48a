"""The learning rate is divided by N instead of the loss: with plain SGD that is the same update."""

import torch
from torch import nn


def fit(model, loader, options):
    step_lr = options.base_lr / options.accumulate_every
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for group in optimizer.param_groups:
        group["lr"] = step_lr
    for _ in range(options.epochs):
        optimizer.zero_grad()
        for index, (x, y) in enumerate(loader):
            nn.functional.cross_entropy(model(x), y).backward()
            if (index + 1) % options.accumulate_every == 0 or index + 1 == len(loader):
                optimizer.step()
                optimizer.zero_grad()
