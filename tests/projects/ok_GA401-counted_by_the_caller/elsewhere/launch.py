import torch
from lessons import Teacher, start
from torch import nn

torch.manual_seed(0)
batches = [(torch.randn(8, 6), torch.randn(8, 2)) for _ in range(8)]
network = nn.Linear(6, 2)
start(Teacher(network, torch.optim.SGD(network.parameters(), lr=0.05, momentum=0.9), 4), batches)
