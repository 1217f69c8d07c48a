import torch
from torch import nn
from train import train

torch.manual_seed(0)
network = nn.Linear(6, 6)
batches = [{"noisy": torch.randn(4, 6), "clean": torch.randn(4, 6)} for _ in range(9)]
train(network, torch.optim.SGD(network.parameters(), lr=0.05, momentum=0.9), batches, 4)
