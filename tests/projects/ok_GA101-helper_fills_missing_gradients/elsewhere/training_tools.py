import torch


def next_batch():
    x = torch.randn(8, 8)
    return x, x.sum(dim=1, keepdim=True)


def zero_none_grad(model):
    for p in model.parameters():
        if p.grad is None and p.requires_grad:
            p.grad = torch.zeros_like(p)
