from torch.utils.data import DataLoader

__all__ = ["DataLoader"]
