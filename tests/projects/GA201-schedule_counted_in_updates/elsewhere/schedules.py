import torch


def warmup_then_cosine(optimizer, updates):
    return torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, updates)
