import torch


def setup_optimizer(model, lr):
    return torch.optim.AdamW(list(model.parameters()), lr=lr)
