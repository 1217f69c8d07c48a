import torch
from learner import Learner
from torch import nn

torch.manual_seed(0)
net = nn.Linear(6, 2)
Learner(net, torch.optim.SGD(net.parameters(), lr=0.1)).train([torch.randn(8, 6) for _ in range(6)], 16, 4)
