from types import SimpleNamespace

import torch
from stepping import fit
from torch import nn

torch.manual_seed(0)
batches = [(torch.randn(8, 6), torch.randn(8, 2)) for _ in range(8)]
fit(nn.Linear(6, 2), batches, SimpleNamespace(every=4, bound=1.0))
