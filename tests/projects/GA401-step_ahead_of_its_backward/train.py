"""The step stands before the backward of its own micro-batch: the first window is one short."""
# observe: params

import torch
from torch import nn


def fit(net, batches, every):
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for index, (inputs, wanted) in enumerate(batches):
        loss = nn.functional.mse_loss(net(inputs), wanted) / every
        if (index + 1) % every == 0:  # expect: GA401
            optimizer.step()
            optimizer.zero_grad()
        loss.backward()
