from types import SimpleNamespace

import torch
from fitting import fit
from torch import nn

torch.manual_seed(0)
network = nn.Linear(6, 2)
optimizer = torch.optim.SGD(network.parameters(), lr=0.05, momentum=0.9)
fit(network, optimizer, [(torch.randn(8, 6), torch.randn(8, 2)) for _ in range(8)], SimpleNamespace(window=4, epochs=2))
