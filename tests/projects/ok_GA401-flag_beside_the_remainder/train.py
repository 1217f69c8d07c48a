"""A flag stands beside the remainder in the guard: with the flag no step is wanted, and N has nothing to do with it."""

import torch
from torch import nn


def tried(network, optimizer, batches, conf):
    for number, x in enumerate(batches):
        (network(x).pow(2).mean() / conf.gather).backward()
        if not conf.dry and (number + 1) % conf.gather == 0:
            optimizer.step()
            optimizer.zero_grad()


def shown(network, optimizer, batches, conf, schedule=None):
    for number, x in enumerate(batches):
        (network(x).pow(2).mean() / conf.gather).backward()
        if (number + 1) % conf.gather == 0 and schedule is None:
            optimizer.step()
            optimizer.zero_grad()


class Settings:
    dry, gather = False, 4


if __name__ == "__main__":
    net = nn.Linear(6, 2)
    tried(net, torch.optim.SGD(net.parameters(), lr=0.05), [torch.randn(8, 6) for _ in range(8)], Settings)
    net = nn.Linear(6, 2)
    shown(net, torch.optim.SGD(net.parameters(), lr=0.05), [torch.randn(8, 6) for _ in range(8)], Settings)
