"""The batch is divided in parts before the loop over them, and only the last part is synchronised."""
# observe: params

import torch
from torch import nn


def fit(net, batches, count):
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for inputs, wanted in batches:
        optimizer.zero_grad()
        xs, ys = inputs.chunk(count), wanted.chunk(count)
        for x, y in zip(xs, ys):
            nn.functional.mse_loss(net(x), y).backward()  # expect: GA201
        optimizer.step()
