import itertools

import torch
from torch import nn
from trainer import Trainer

torch.manual_seed(0)
model = nn.Linear(6, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
Trainer(model, optimizer, (torch.randn(8, 6) for _ in itertools.count()), steps=4, grad_value=1e3).train(updates=3)
