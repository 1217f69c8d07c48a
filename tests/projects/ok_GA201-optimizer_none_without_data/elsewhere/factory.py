import torch


def make(model):
    return torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
