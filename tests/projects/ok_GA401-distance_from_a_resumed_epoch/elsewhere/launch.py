from types import SimpleNamespace

import torch
from torch import nn
from train import Trainer

torch.manual_seed(0)
network = nn.Linear(6, 2)
batches = [(torch.randn(4, 6), torch.randn(4, 2)) for _ in range(8)]
optimizer = torch.optim.SGD(network.parameters(), lr=0.001, momentum=0.9)
Trainer(network, optimizer, None, SimpleNamespace(epochs=2, every=4)).train(batches)
