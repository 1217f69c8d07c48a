import torch
from torch import nn


def build(settings):
    return nn.Linear(6, 2)


def next_batch():
    return torch.randn(8, 6)
