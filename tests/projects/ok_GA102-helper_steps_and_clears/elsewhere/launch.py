import torch
from torch import nn
from train import fit

if __name__ == "__main__":
    fit(nn.Linear(5, 5), [[torch.randn(4, 5) for _ in range(3)] for _ in range(3)], 3)
