from types import SimpleNamespace

import torch
import torch.distributed as dist
from fitting import Fitting
from torch import nn

dist.init_process_group("gloo")
torch.manual_seed(0)
net = nn.Linear(6, 2)
optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
inputs = [torch.randn(4, 6) for _ in range(8)]
settings = SimpleNamespace(rank=0, updates=2, window=4)
Fitting(settings, net).run(optimizer, iter([(x, x[:, :2].sin()) for x in inputs]))
dist.destroy_process_group()
