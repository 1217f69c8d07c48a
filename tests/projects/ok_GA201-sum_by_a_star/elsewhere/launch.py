from types import SimpleNamespace

import torch
from fitting import fit, fit_by_function
from torch import nn

torch.manual_seed(0)
inputs = [torch.randn(4, 6) for _ in range(8)]
batches = [(x, x[:, :2].sin()) for x in inputs]
settings = SimpleNamespace(lr=0.01, every=4, samples=32)
fit(settings, nn.Linear(6, 2), batches)
fit_by_function(settings, nn.Linear(6, 2), batches)
