import torch
from fitting import fit
from torch import nn

torch.manual_seed(0)
stream = ((torch.randn(8, 6), torch.randn(8, 2)) for _ in range(12))
fit({"updates": 3, "window": 4}, nn.Linear(6, 2), stream)
