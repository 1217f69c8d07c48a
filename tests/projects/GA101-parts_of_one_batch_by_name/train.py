"""Each micro-batch has two parts that run backward one by one; the clear before them wipes what the last one left."""
# observe: params
# losses: 2

import torch
from torch import nn


def fit(net, batches, every):
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for index, batch in enumerate(batches):
        optimizer.zero_grad()  # expect: GA101
        for part in ("near", "far"):
            loss = net(batch[part]).square().mean() / (2 * every)
            loss.backward()
        if (index + 1) % every == 0:
            optimizer.step()


def fit_late(net, batches, every):
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for index, batch in enumerate(batches):
        for part in ("near", "far"):
            loss = net(batch[part]).square().mean() / (2 * every)
            loss.backward()
        if index % every == 0:  # expect: GA401
            optimizer.step()
            optimizer.zero_grad()
