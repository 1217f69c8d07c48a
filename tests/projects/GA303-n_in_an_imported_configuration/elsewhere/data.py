import torch


def next_batch():
    x = torch.randn(8, 6)
    return x, x[:, :3].argmax(dim=1)
