"""A step follows each micro-batch, and the clear waits for N of them: gradients are applied again and again."""
# observe: params

import torch
from torch import nn


def fit(net, batches, every):
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    optimizer.zero_grad()
    for index, (inputs, wanted) in enumerate(batches):
        loss = nn.functional.mse_loss(net(inputs), wanted) / every
        loss.backward()
        optimizer.step()  # expect: GA102
        if (index + 1) % every == 0:
            optimizer.zero_grad()
