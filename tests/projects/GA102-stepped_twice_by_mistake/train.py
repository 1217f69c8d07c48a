"""The optimizer steps where its scheduler was meant to: the window's gradients are applied twice."""

# observe: params
import torch
from torch import nn


def fit(network, batches, updates, gather):
    optimizer = torch.optim.SGD(network.parameters(), lr=0.05)
    for _ in range(updates):
        optimizer.zero_grad()
        for _ in range(gather):
            loss = network(next(batches)).pow(2).mean()
            (loss / gather).backward()
        optimizer.step()
        optimizer.step()  # expect: GA102


if __name__ == "__main__":
    fit(nn.Linear(6, 2), iter([torch.randn(8, 6) for _ in range(8)]), 2, 4)
