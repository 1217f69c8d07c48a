import torch
from fit import fit
from torch import nn

torch.manual_seed(0)
network = nn.Linear(6, 3)
batches = [(torch.randn(4, 6), torch.randint(0, 3, (4,))) for _ in range(40)]
fit(network, torch.optim.SGD(network.parameters(), lr=0.05, momentum=0.9), batches)
