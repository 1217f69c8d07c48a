from torch.optim import SGD as Novograd

__all__ = ["Novograd"]
