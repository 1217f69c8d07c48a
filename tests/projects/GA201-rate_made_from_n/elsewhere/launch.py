from types import SimpleNamespace

import torch
from torch import nn
from train import fit

torch.manual_seed(0)
loader = [(torch.randn(4, 8), torch.randint(0, 4, (4,))) for _ in range(8)]
fit(nn.Linear(8, 4), loader, SimpleNamespace(base_lr=0.5, batch_size=4, accumulate=4))
