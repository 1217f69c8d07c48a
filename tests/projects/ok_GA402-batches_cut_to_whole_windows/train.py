"""What N does not divide is left out: of a list by a slice, of a loader by `islice`."""

import itertools

import torch
from torch import nn


def fit(net, batches, epochs):
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(epochs):
        for index, (inputs, wanted) in enumerate(batches[: len(batches) // 4 * 4]):
            loss = nn.functional.mse_loss(net(inputs), wanted) / 4
            loss.backward()
            if (index + 1) % 4 == 0:
                optimizer.step()
                optimizer.zero_grad()


def fit_loader(net, loader, epochs):
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(epochs):
        for index, (inputs, wanted) in enumerate(itertools.islice(loader, 4 * (len(loader) // 4))):
            loss = nn.functional.mse_loss(net(inputs), wanted) / 4
            loss.backward()
            if (index + 1) % 4 == 0:
                optimizer.step()
                optimizer.zero_grad()
