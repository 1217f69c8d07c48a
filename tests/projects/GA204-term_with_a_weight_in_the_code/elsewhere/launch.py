from types import SimpleNamespace

import torch
from fitting import fit
from torch import nn

torch.manual_seed(0)
network = nn.Linear(6, 4)
optimizer = torch.optim.SGD(network.parameters(), lr=0.05, momentum=0.9)
stream = ((torch.randn(8, 6), torch.rand(8, 4).round()) for _ in range(12))
fit(network, optimizer, stream, SimpleNamespace(window=4, updates=3))
