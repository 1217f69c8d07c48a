import torch
from pkg.training import train

torch.manual_seed(0)
inputs = [torch.randn(8, 6) for _ in range(12)]
train(torch.nn.Linear(6, 2), ((x, x[:, :2].sin()) for x in inputs), updates=3)
