import torch
from torch import nn
from train import train

torch.manual_seed(0)
network = nn.Linear(6, 2)
given = [(torch.randn(4, 6), torch.randn(4, 2)) if i != 3 else None for i in range(12)]
train(network, torch.optim.SGD(network.parameters(), lr=0.05), given, 4)
