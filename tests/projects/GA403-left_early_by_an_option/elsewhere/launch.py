from types import SimpleNamespace

import torch
from epoch import epoch
from torch import nn

torch.manual_seed(0)
network = nn.Linear(6, 2)
batches = [(torch.randn(4, 6), torch.randn(4, 2)) for _ in range(6)]
optimizer = torch.optim.SGD(network.parameters(), lr=0.05, momentum=0.9)
for _ in range(2):
    epoch(network, optimizer, batches, 4, SimpleNamespace(trial=False))
