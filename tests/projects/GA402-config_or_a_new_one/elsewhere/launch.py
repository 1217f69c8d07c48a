import torch
from fitting import Options, fit
from torch import nn

torch.manual_seed(0)
batches = [(torch.randn(8, 6), torch.randn(8, 2)) for _ in range(10)]
fit(nn.Linear(6, 2), batches, Options(accumulation=4, max_epochs=2))
