"""The counter is compared before it moves, so that windows are one too long; what is left is flushed, as it should be."""
# observe: params

import torch
from torch import nn


def epoch(network, batches, optimizer, gather=4, bound=None):
    waiting = 0
    for x, y in batches:
        loss = nn.functional.mse_loss(network(x), y)
        loss.backward()  # expect: GA201 "the losses of 5 micro-batches"
        if bound is not None:
            nn.utils.clip_grad_norm_(network.parameters(), bound)  # expect: GA303 "5 times in a window of 5"
        if waiting == gather:  # expect: GA401 "windows have 5 micro-batches instead of `gather` = 4"
            optimizer.step()
            optimizer.zero_grad()
            waiting = 0
        else:
            waiting += 1
    if waiting != 0:
        optimizer.step()
        optimizer.zero_grad()
