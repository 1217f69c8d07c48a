import torch
from torch import nn


def profile(x, ops):
    for op in ops:
        y = op(x)
        y.sum().backward()


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 2)

    def forward(self, x):
        return self.layer(x)

    def info(self):
        profile(torch.zeros(1, 4), [self.layer])
