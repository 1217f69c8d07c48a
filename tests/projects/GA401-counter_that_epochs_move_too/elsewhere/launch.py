from types import SimpleNamespace

import torch
from torch import nn
from train import train

torch.manual_seed(0)
network = nn.Linear(6, 2)
batches = [(torch.randn(4, 6), torch.randn(4, 2)) for _ in range(12)]
options = SimpleNamespace(epochs=2, every=4, resume=False, reached=0)
train(network, torch.optim.SGD(network.parameters(), lr=0.05, momentum=0.9), batches, options)
