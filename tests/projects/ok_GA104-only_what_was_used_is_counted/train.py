"""Batches that are missing or fail are counted out, or give their whole window up."""

import torch
from torch import nn
from torch.nn.functional import mse_loss


def train(net, optimizer, loader, every):
    used = 0
    optimizer.zero_grad()
    for batch in loader:
        if batch is None or len(batch) < 2:
            continue
        used += 1
        try:
            loss = mse_loss(net(batch[0]), batch[1]) / every
        except RuntimeError:
            used -= 1
            continue
        loss.backward()
        if used % every == 0:
            optimizer.step()
            optimizer.zero_grad()


def train_or_give_up(net, optimizer, batches, every):
    optimizer.zero_grad()
    for i, (x, y) in enumerate(batches):
        try:
            (mse_loss(net(x), y) / every).backward()
        except RuntimeError:
            optimizer.zero_grad()
            continue
        if (i + 1) % every == 0:
            optimizer.step()
            optimizer.zero_grad()


if __name__ == "__main__":
    torch.manual_seed(0)
    network = nn.Linear(6, 2)
    sgd = torch.optim.SGD(network.parameters(), lr=0.05)
    given = [(torch.randn(4, 6), torch.randn(4, 2)) for _ in range(8)]
    train(network, sgd, [None, *given], 4)
    train_or_give_up(network, sgd, given, 4)
