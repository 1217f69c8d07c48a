from types import SimpleNamespace

import torch
from passing import Passing
from torch import nn

torch.manual_seed(0)
loader = [(torch.randn(8, 6), torch.randn(8, 2)) for _ in range(8)]
network = nn.Linear(6, 2)
optimizer = torch.optim.SGD(network.parameters(), lr=0.05, momentum=0.9)
Passing(network, loader, optimizer, SimpleNamespace(gather=4, epochs=2)).drive()
