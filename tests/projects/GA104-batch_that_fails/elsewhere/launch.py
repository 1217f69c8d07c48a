import torch
from train import Tight, train

torch.manual_seed(0)
network = Tight()
sizes = [4, 4, 4, 16, *[4] * 8]
made = [(torch.randn(size, 6), torch.randn(size, 2)) for size in sizes]
train(network, torch.optim.SGD(network.parameters(), lr=0.05), made, 4)
