import torch


def read(name):
    x = torch.randn(40, 6)
    return x, x[:, :2] + 1
