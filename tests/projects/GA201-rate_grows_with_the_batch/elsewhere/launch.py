from types import SimpleNamespace

import torch
from torch import nn
from train import fit

torch.manual_seed(0)
batches = [(torch.randn(4, 8), torch.randn(4, 8)) for _ in range(8)]
fit(nn.Linear(8, 8), batches, {"lr0": 0.1}, SimpleNamespace(total_batch=16, micro_batch=4))
