import torch
from torch import nn
from train import fit, fit_tokens

torch.manual_seed(0)
batches = [(torch.randn(4, 8), torch.randint(0, 4, (4,)), torch.ones(4)) for _ in range(8)]
fit(nn.Linear(8, 4), batches, 4)
fit_tokens(nn.Linear(8, 4), batches, 4)
