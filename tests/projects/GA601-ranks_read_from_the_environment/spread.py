"""The launcher's environment says whether there are ranks, and the wrapper has another name here."""
# observe: allreduces

import os

import torch
from torch.nn.functional import mse_loss
from torch.nn.parallel import DistributedDataParallel as NativeDDP


def train(model, loader, cfg):
    cfg.spread = False
    if "WORLD_SIZE" in os.environ:
        cfg.spread = int(os.environ["WORLD_SIZE"]) > 1
    if cfg.spread:
        model = NativeDDP(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(cfg.epochs):
        optimizer.zero_grad()
        for i, (x, y) in enumerate(loader):
            loss = mse_loss(model(x), y) / cfg.n
            loss.backward()  # expect: GA601
            if (i + 1) % cfg.n == 0:  # expect: GA403
                optimizer.step()
                optimizer.zero_grad()
