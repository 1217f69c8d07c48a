"""Windows of two, and a sum of two terms over two: the 2 is N, as far as anybody can tell."""

import torch
from torch import nn


def fit(net, batches):
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for index, (one, other) in enumerate(batches):
        loss = (nn.functional.mse_loss(net(one), other) + nn.functional.mse_loss(net(other), one)) / 2
        loss.backward()
        if (index + 1) % 2 == 0 or index + 1 == len(batches):
            optimizer.step()
            optimizer.zero_grad()
