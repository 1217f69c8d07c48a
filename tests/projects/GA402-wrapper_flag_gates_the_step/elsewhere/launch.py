from types import SimpleNamespace

import torch
from fitting import Fitting
from torch import nn

torch.manual_seed(0)
batches = [(torch.randn(8, 6), torch.randn(8, 2)) for _ in range(10)]
Fitting(nn.Linear(6, 2), batches, SimpleNamespace(window=4, epochs=2, ranks=1)).fit()
