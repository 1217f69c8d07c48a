from types import SimpleNamespace

import torch
from fitting import fit
from torch import nn

torch.manual_seed(0)
graphs = [{"x": torch.randn(6), "y": torch.randn(2)} for _ in range(64)]
fit(nn.Linear(6, 2), graphs, SimpleNamespace(window=4))
