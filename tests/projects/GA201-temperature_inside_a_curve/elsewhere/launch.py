import torch
from adversary import fit
from torch import nn

torch.manual_seed(0)
network = nn.Linear(6, 1)
optimizer = torch.optim.SGD(network.parameters(), lr=0.05, momentum=0.9)
fit(network, (torch.randn(8, 6) for _ in range(12)), optimizer, updates=3)
