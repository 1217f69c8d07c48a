from types import SimpleNamespace

import torch
from epoch import fit
from torch import nn

torch.manual_seed(0)
network = nn.Linear(6, 3)
optimizer = torch.optim.SGD(network.parameters(), lr=0.05, momentum=0.9)
loader = [(torch.randn(8, 6), torch.randint(3, (8,))) for _ in range(10)]
fit(SimpleNamespace(window=4, epochs=3), network, optimizer, nn.CrossEntropyLoss(), loader)
