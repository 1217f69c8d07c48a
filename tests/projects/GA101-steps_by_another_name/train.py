"""The optimizer steps in a helper of another file, whose name does not say so; the clear at the top loses micro-batches."""
# observe: params

import torch
from applying import finish
from torch import nn


def train(model, optimizer, batches, every=4):
    for number, x in enumerate(batches, start=1):
        optimizer.zero_grad()  # expect: GA101
        (nn.functional.mse_loss(model(x), x) / every).backward()
        if number % every == 0:
            finish(optimizer)


if __name__ == "__main__":
    torch.manual_seed(0)
    net = nn.Linear(5, 5)
    train(net, torch.optim.SGD(net.parameters(), lr=0.1), torch.randn(12, 8, 5))
