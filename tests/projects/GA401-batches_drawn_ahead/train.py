"""Each pass draws the batch of the next one. The first guard is right; the second spares the first micro-batch."""
# observe: params

import torch
from torch import nn


def fit(net, source, every):
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    inputs, wanted = source.next()
    done = 0
    while inputs is not None:
        loss = nn.functional.mse_loss(net(inputs), wanted) / every
        loss.backward()
        if (done + 1) % every == 0:
            optimizer.step()
            optimizer.zero_grad()
        done += 1
        inputs, wanted = source.next()


def fit_late(net, source, every):
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    inputs, wanted = source.next()
    done = 0
    while inputs is not None:
        loss = nn.functional.mse_loss(net(inputs), wanted) / every
        loss.backward()
        if done > 0 and done % every == 0:  # expect: GA401
            optimizer.step()
            optimizer.zero_grad()
        done += 1
        inputs, wanted = source.next()
