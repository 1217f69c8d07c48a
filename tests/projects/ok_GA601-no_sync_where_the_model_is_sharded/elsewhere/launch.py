from types import SimpleNamespace

import torch
from torch import nn
from train import train_one_epoch

torch.manual_seed(0)
model = nn.Linear(6, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
inputs = [torch.randn(4, 8, 6) for _ in range(3)]
train_one_epoch(model, [(x, x[:, :, :3].argmax(dim=2)) for x in inputs], optimizer, None, SimpleNamespace(accum_freq=4))
