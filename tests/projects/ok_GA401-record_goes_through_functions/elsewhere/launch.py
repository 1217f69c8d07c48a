import torch
from trainer import Trainer
from torch import nn

torch.manual_seed(0)
net = nn.Linear(6, 2)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
batches = iter([torch.randn(8, 6) for _ in range(16)])
Trainer().train(net, optimizer, batches, {"accum": 4, "clip": 1e9, "updates": 4})
