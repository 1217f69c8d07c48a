import torch
from torch import nn
from train import train

torch.manual_seed(0)
loader = [(torch.randn(8, 6), torch.randn(8, 2)) for _ in range(8)]
network = nn.Linear(6, 2)
optimizer = torch.optim.SGD(network.parameters(), lr=0.05, momentum=0.9)
train(network, optimizer, torch.amp.GradScaler("cpu", init_scale=1024.0), loader, 4)
