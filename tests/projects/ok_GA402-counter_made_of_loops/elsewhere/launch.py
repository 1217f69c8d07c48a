import torch
from torch import nn
from trainer import flat, grouped

data = [[torch.randn(8, 6) for _ in range(2)] for _ in range(3)]
grouped(nn.Linear(6, 2), data, {"epochs": 2, "group": 2, "accum": 4})
flat(nn.Linear(6, 2), data[0] + data[1] + data[2], {"epochs": 2, "accum": 4}, 6)
