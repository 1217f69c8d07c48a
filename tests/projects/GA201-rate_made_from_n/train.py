"""The rate is multiplied with N before the optimizer is made: linear scaling, which a missing 1/N makes worse."""
# observe: params

import torch
from torch import nn


def fit(model, loader, cfg):
    scaled_lr = cfg.base_lr * cfg.batch_size / 512.0
    if cfg.accumulate > 1:
        scaled_lr = scaled_lr * cfg.accumulate
    optimizer = torch.optim.SGD(model.parameters(), lr=scaled_lr)
    for index, (x, y) in enumerate(loader):
        nn.functional.cross_entropy(model(x), y).backward()  # expect: GA201
        if (index + 1) % cfg.accumulate == 0 or index + 1 == len(loader):
            optimizer.step()
            optimizer.zero_grad()
