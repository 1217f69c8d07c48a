"""A function that is handed in makes a network for each fold: it draws no batch."""

# observe: params
import torch
from torch import nn


def one_pass(network, batches, optimizer, conf):
    for number, x in enumerate(batches):
        network(x).pow(2).mean().backward()  # expect: GA201
        if (number + 1) % conf.gather == 0:
            optimizer.step()
            optimizer.zero_grad()


def folds(conf, data, make_model):
    for fold in range(2):
        network = make_model()
        optimizer = torch.optim.SGD(network.parameters(), lr=conf.rate)
        for _epoch in range(1):
            one_pass(network, data[fold], optimizer, conf)


class Settings:
    gather, rate = 4, 0.05


if __name__ == "__main__":
    folds(Settings, [[torch.randn(8, 6) for _ in range(8)] for _ in range(2)], lambda: nn.Linear(6, 2))
