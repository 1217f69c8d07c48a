"""A batch is cut in parts of a size: how many parts there are is another number, and the message is about that."""
# observe: params

import torch
from torch import nn
from torch.nn.functional import mse_loss


def train(net, optimizer, xs, ys, chunk, updates):
    for _ in range(updates):
        optimizer.zero_grad()
        for start in range(0, len(xs), chunk):
            part = slice(start, start + chunk)
            mse_loss(net(xs[part]), ys[part]).backward()  # expect: GA201 "the losses of 4 micro-batches"
        optimizer.step()


if __name__ == "__main__":
    torch.manual_seed(0)
    network = nn.Linear(6, 2)
    train(network, torch.optim.SGD(network.parameters(), lr=0.1), torch.randn(16, 6), torch.randn(16, 2), 4, 3)
