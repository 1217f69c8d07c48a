import torch
from torch import nn
from train import train

torch.manual_seed(0)
encoder = nn.Linear(6, 4)
batches = [torch.randn(16, 6) for _ in range(3)]
train(encoder, torch.optim.SGD(encoder.parameters(), lr=0.05, momentum=0.9), batches, 4)
