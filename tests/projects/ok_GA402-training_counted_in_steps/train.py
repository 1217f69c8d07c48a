"""A training counted in steps, over batches that something outside hands on for ever: there is no epoch to leak from."""

import torch
from torch import nn


def train(conf, network, batches, optimizer):
    for number in range(conf.num_updates):
        loss = network(next(batches)).pow(2).mean() / conf.gather
        loss.backward()
        if (number + 1) % conf.gather == 0:
            optimizer.step()
            optimizer.zero_grad()


def make(conf):
    network = nn.Linear(6, 2)
    return network, torch.optim.SGD(network.parameters(), lr=conf.rate)
