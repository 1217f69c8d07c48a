import torch
from torch import nn
from train import fit

torch.manual_seed(0)
network = nn.Linear(6, 2)
batches = [(torch.randn(4, 6), torch.randn(4, 2)) for _ in range(8)]
fit(network, torch.optim.SGD(network.parameters(), lr=0.05, momentum=0.9), batches, 4, 0.01)
