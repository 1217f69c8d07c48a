from types import SimpleNamespace

import torch
from torch import nn
from trainer import Trainer

torch.manual_seed(0)
net = nn.Linear(6, 2)
settings = SimpleNamespace(steps=16, train_steps=16, max_samples=1000, batch_size=8, accum=4)
Trainer(net, torch.optim.SGD(net.parameters(), lr=0.1), [torch.randn(8, 6) for _ in range(16)], settings).run()
