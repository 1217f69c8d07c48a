from types import SimpleNamespace

import torch
from fitting import fit
from torch import nn

torch.manual_seed(0)
network = nn.Linear(6, 2)
optimizer = torch.optim.SGD(network.parameters(), lr=0.05, momentum=0.9)
batches = [(torch.randn(8, 6), torch.randn(8, 2)) for _ in range(8)]
for _ in range(2):
    fit(network, optimizer, batches, SimpleNamespace(window=4))
