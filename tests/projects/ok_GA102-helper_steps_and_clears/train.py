"""A helper that another package defines runs backward, and its step clears as well."""

import torch
from halving import Halving
from torch import nn


def fit(net, batches, every, scheduler=None):
    helper = Halving(active=False)
    optimizer = torch.optim.AdamW(net.parameters(), lr=0.01)
    optimizer.zero_grad()
    for batch in batches:
        for part in batch:
            loss = nn.functional.mse_loss(net(part), part) / every
            helper.backward(loss)
        helper.step(net, optimizer, scheduler)
