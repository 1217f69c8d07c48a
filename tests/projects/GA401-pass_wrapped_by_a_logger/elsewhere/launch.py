from types import SimpleNamespace

import torch
from torch import nn
from train import train

torch.manual_seed(0)
network = nn.Linear(6, 2)
optimizer = torch.optim.SGD(network.parameters(), lr=0.05, momentum=0.9)
loader = [(torch.randn(8, 6), torch.randn(8, 2)) for _ in range(13)]
train(SimpleNamespace(network=network, optimizer=optimizer, gather=4), loader)
