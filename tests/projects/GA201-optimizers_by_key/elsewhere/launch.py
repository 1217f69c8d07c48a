from types import SimpleNamespace

import torch
from torch import nn
from train import train


def main():
    torch.manual_seed(0)
    net = nn.Linear(6, 3)
    optimizers = {"net": torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)}
    data = iter([torch.randn(8, 6) for _ in range(12)])
    train(data, net, optimizers, SimpleNamespace(updates=3, accumulation=4))


if __name__ == "__main__":
    main()
