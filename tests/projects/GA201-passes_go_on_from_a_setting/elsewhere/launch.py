from types import SimpleNamespace

import torch
from torch import nn
from train import train

torch.manual_seed(0)
stream = ((torch.randn(4, 6), torch.randn(4, 2)) for _ in range(64))
network = nn.Linear(6, 2)
optimizer = torch.optim.SGD(network.parameters(), lr=0.05, momentum=0.9)
train(SimpleNamespace(gather=4, plan=SimpleNamespace(passes=16, begin=0)), network, optimizer, stream)
