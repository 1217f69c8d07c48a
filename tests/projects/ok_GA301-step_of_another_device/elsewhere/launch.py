from types import SimpleNamespace

import torch
from torch import nn
from trainer import Trainer

torch.manual_seed(0)
net = nn.Linear(6, 2)
trainer = Trainer(net, torch.optim.SGD(net.parameters(), lr=0.1), SimpleNamespace(use_amp=False, accum=4))
trainer.train(iter([torch.randn(8, 6) for _ in range(8)]), 2)
