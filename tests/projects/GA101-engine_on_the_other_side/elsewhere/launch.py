import torch
from torch import nn
from train import epoch

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 3))
batches = [(torch.randn(4, 6), torch.randint(0, 3, (4,))) for _ in range(8)]
epoch(net, torch.optim.SGD(net.parameters(), lr=0.1), torch.amp.GradScaler("cpu"), batches, 4)
