from types import SimpleNamespace

import torch
from preferences import train
from torch import nn

torch.manual_seed(0)
net = nn.Linear(6, 1)
tree = SimpleNamespace(map=lambda f, pair: {name: f(part) for name, part in pair.items()})
pairs = [{"x": torch.randn(8, 2, 6), "liked": torch.randint(0, 2, (8, 2)).float()} for _ in range(10)]
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(3):
    train(net, pairs, optimizer, tree, 4)
