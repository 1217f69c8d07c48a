from types import SimpleNamespace

import torch
from torch import nn
from train import Trainer

torch.manual_seed(0)
loader = ((torch.randn(8, 6), torch.randn(8, 2)) for _ in range(8))
Trainer(nn.Linear(6, 2), loader, SimpleNamespace(gather=4, updates=2)).run()
