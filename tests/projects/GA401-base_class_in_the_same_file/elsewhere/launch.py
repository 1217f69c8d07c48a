from types import SimpleNamespace

import torch
from train import Passing
from torch import nn

torch.manual_seed(0)
loader = [(torch.randn(8, 6), torch.randn(8, 2)) for _ in range(9)]
network = nn.Linear(6, 2)
optimizer = torch.optim.SGD(network.parameters(), lr=0.05, momentum=0.9)
Passing(network, loader, optimizer, SimpleNamespace(gather=4)).drive()
