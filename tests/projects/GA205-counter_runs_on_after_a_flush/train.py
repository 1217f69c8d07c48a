"""Each epoch is flushed, and the counter runs on: the flushed window is short, and so is the one after it."""

# observe: params
import torch
from torch import nn


def train(network, batches, gather):
    optimizer = torch.optim.SGD(network.parameters(), lr=0.05)
    seen = 0
    for _epoch in range(2):
        for x in batches:
            seen += 1
            (network(x).pow(2).mean() / gather).backward()
            if seen % gather == 0:
                optimizer.step()
                optimizer.zero_grad()
        optimizer.step()  # expect: GA205
        optimizer.zero_grad()


if __name__ == "__main__":
    train(nn.Linear(6, 2), [torch.randn(8, 6) for _ in range(10)], 4)
