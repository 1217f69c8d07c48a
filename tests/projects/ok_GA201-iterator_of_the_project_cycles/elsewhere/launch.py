import torch
from train import setup


class Settings:
    max_steps, epochs, save_every = 4, 3, 2

    def accumulation(self):
        return 4


if __name__ == "__main__":
    inputs = [torch.randn(4, 8) for _ in range(8)]
    setup(Settings(), [(x, x.sum(dim=1, keepdim=True)) for x in inputs])
