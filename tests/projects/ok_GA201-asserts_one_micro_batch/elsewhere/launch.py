import torch
from torch import nn
from train import Trainer

torch.manual_seed(0)
Trainer(nn.Linear(8, 4), [(torch.randn(4, 8), torch.rand(4, 1)) for _ in range(3)], 4).run()
