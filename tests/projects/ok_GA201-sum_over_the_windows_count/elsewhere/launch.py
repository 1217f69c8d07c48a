import torch
from torch import nn
from train import fit, fit_slices

torch.manual_seed(0)
batches = [(torch.randn(16, 8), torch.randint(0, 4, (16,)), torch.ones(16)) for _ in range(3)]
fit(nn.Linear(8, 4), batches, 4)
fit_slices(nn.Linear(8, 4), batches, 4)
