import torch
from torch import nn
from train import Trainer

torch.manual_seed(0)
Trainer(nn.Linear(8, 8), 4).fit([(torch.randn(4, 8), torch.randn(4, 8)) for _ in range(8)], 2)
