from types import SimpleNamespace

import torch
from torch import nn
from train import train

torch.manual_seed(0)
model = nn.Linear(6, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
train(model, [torch.randn(8, 6) for _ in range(12)], optimizer, SimpleNamespace(accum_freq=4))
