from types import SimpleNamespace

import torch
from torch import nn
from train import fit

torch.manual_seed(0)
net = nn.Linear(6, 3)
batches = [(torch.randn(4, 6), torch.randn(4, 3)) for _ in range(8)]
fit(net, torch.optim.SGD(net.parameters(), lr=0.1), batches, SimpleNamespace(trainer=SimpleNamespace(accumulate_grad_batches=4)))
