import torch
from train import train

tower = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.Tanh(), torch.nn.Linear(3, 1)).double()
pairs = [(torch.randn(8, 4, dtype=torch.float64), torch.randn(8, 1, dtype=torch.float64)) for _ in range(3)]
train(tower, torch.optim.SGD(tower.parameters(), lr=0.1), pairs, 2)
