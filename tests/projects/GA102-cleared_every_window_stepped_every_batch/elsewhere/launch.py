from types import SimpleNamespace

import torch
from engine import fit
from torch import nn

torch.manual_seed(0)
batches = [(torch.randn(8, 6), torch.randn(8, 2)) for _ in range(8)]
fit(nn.Linear(6, 2), batches, SimpleNamespace(accum_iter=4, epochs=2, bound=10.0))
