import torch
from torch import nn

inputs = [torch.randn(8, 6) for _ in range(8)]
loader = [(x, x[:, :3].argmax(dim=1)) for x in inputs]


def build(args):
    return nn.Linear(6, 3)
