from types import SimpleNamespace

import torch
from torch import nn
from training import fit

torch.manual_seed(0)
batches = [(torch.randn(8, 6), torch.randn(8, 2)) for _ in range(8)]
fit(nn.Linear(6, 2), batches, SimpleNamespace(hostile=True, rate=0.5, begin=1, epochs=3, every=4))
