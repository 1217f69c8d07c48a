import torch
from learn import train
from torch import nn

torch.manual_seed(0)
net = nn.Linear(6, 2)
samples = [(str(i), (torch.randn(8, 6), torch.randn(8, 2))) for i in range(8)]
train(net, samples, [torch.optim.SGD(net.parameters(), lr=0.1)], 4)
