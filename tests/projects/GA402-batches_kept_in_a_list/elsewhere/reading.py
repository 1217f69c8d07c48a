import torch


def read(path):
    torch.manual_seed(len(path))
    return torch.randn(48, 8).tolist()
