import torch
from torch import nn
from train import train

torch.manual_seed(0)
network = nn.Linear(6, 2)
batches = [(torch.randn(16, 6), torch.randn(16, 2)) for _ in range(3)]
train(network, torch.optim.SGD(network.parameters(), lr=0.05, momentum=0.9), batches, 4)
