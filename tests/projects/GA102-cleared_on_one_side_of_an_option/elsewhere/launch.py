import torch
from fitting import fit
from torch import nn

torch.manual_seed(0)
batches = [(torch.randn(8, 6), torch.randn(8, 2)) for _ in range(8)]
fit({"epochs": 2, "window": 4, "bounded": True}, nn.Linear(6, 2), batches)
