import torch
from torch import nn


class TwoTasks(nn.Module):
    def __init__(self):
        super().__init__()
        self.heads = nn.ModuleDict({"near": nn.Linear(6, 6), "far": nn.Linear(6, 6)})

    def forward(self, x, task):
        return (self.heads[task](x) - x.sin()).pow(2)


def build():
    return TwoTasks()


def loaders():
    return {name: [torch.randn(8, 6) for _ in range(5)] for name in ("near", "far")}
