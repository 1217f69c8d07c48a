import torch
from torch import nn
from train import fit, fit_loader

torch.manual_seed(0)
batches = [(torch.randn(4, 8), torch.randn(4, 8)) for _ in range(10)]
fit(nn.Linear(8, 8), batches, 2)
fit_loader(nn.Linear(8, 8), batches, 2)
