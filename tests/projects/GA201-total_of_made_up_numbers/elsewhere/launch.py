from types import SimpleNamespace

import torch
from torch import nn
from train import train

torch.manual_seed(0)


class Stream:
    examples = range(64)

    def __iter__(self):
        while True:
            yield torch.randn(4, 6), torch.randn(4, 2)


network = nn.Linear(6, 2)
optimizer = torch.optim.SGD(network.parameters(), lr=0.05, momentum=0.9)
train(SimpleNamespace(rounds=2, copies=1, ranks=1, size=4, gather=4), network, optimizer, Stream())
