import torch
from recipe import main
from torch.utils.data import TensorDataset


class Settings(dict):
    __getattr__ = dict.__getitem__


if __name__ == "__main__":
    torch.manual_seed(0)
    x = torch.randn(40, 8)
    data = TensorDataset(x, x.sum(dim=1, keepdim=True))
    main(Settings(every=4, max_steps=None, epochs=2, lr=0.01, batch_size=4, data=data))
