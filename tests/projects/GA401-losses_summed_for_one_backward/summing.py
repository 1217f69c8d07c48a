"""The losses of a window are summed, and one backward runs on their mean: the first sum holds one of them."""
# observe: params

import torch
from torch import nn


def train(network, loader, options):
    optimizer = torch.optim.SGD(network.parameters(), lr=0.05, momentum=0.9)
    criterion = nn.MSELoss()
    for _ in range(options.epochs):
        optimizer.zero_grad()
        loss = 0
        for index, (x, y) in enumerate(loader):
            loss += criterion(network(x), y)
            if index % options.every == 0:  # expect: GA401 "the first window of each epoch has 1 micro-batch"
                loss = loss / options.every
                loss.backward()  # expect: GA106
                optimizer.step()
                optimizer.zero_grad()
                loss = 0
