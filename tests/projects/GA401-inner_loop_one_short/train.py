"""The inner loop runs N - 1 micro-batches of losses that are divided by N."""
# observe: params

import torch
from torch import nn


def fit(net, source, rounds, every):
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(rounds):
        for _ in range(every - 1):  # expect: GA401
            inputs, wanted = next(source)
            loss = nn.functional.mse_loss(net(inputs), wanted) / every
            loss.backward()
        optimizer.step()
        optimizer.zero_grad()
