"""There is an average only where the settings ask for one: a name is None first, and built under the condition."""
# observe: none

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from averages import build_average


def by_the_setting(settings, net, loader):
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
    ema = None
    if settings.use_ema:
        ema = build_average(settings, net)
    for index, (x, y) in enumerate(loader):
        loss = nn.functional.mse_loss(net(x), y) / settings.every
        loss.backward()
        if (index + 1) % settings.every == 0:
            optimizer.step()
            optimizer.zero_grad()
        if settings.use_ema:
            ema.step(net)  # expect: GA405


def by_the_average(settings, net, loader):
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
    ema = None
    if settings.use_ema:
        ema = build_average(settings, net)
    for index, (x, y) in enumerate(loader):
        loss = nn.functional.mse_loss(net(x), y) / settings.every
        loss.backward()
        if (index + 1) % settings.every == 0:
            optimizer.step()
            optimizer.zero_grad()
        if ema is not None:
            ema.step(net)  # expect: GA405


def data():
    torch.manual_seed(0)
    x = torch.randn(32, 8)
    return DataLoader(TensorDataset(x, x.sum(dim=1, keepdim=True)), batch_size=2)
