from types import SimpleNamespace

import torch
from torch import nn
from train import fit

torch.manual_seed(0)
batches = [(torch.randn(4, 6), torch.randn(4, 3)) for _ in range(8)]
fit(nn.Linear(6, 3), batches, SimpleNamespace(rate=0.1, accumulation=4, epochs=2))
