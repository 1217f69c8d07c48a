from types import SimpleNamespace

import torch
from torch import nn
from train import fit

torch.manual_seed(0)
net = nn.Linear(6, 3)
batches = [(torch.randn(4, 6), torch.randn(4, 3)) for _ in range(8)]
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
fit(net, optimizer, nn.functional.mse_loss, batches, SimpleNamespace(epochs=2, accumulation=4))
