"""The gradients are bounded by hand right before the step; or given one length, for which a sum serves as well as a mean."""

import torch
from torch import nn


def bound(parameters, longest):
    held = [p for p in parameters if p.grad is not None]
    length = torch.norm(torch.stack([p.grad.norm() for p in held]))
    factor = longest / (length.item() + 1e-6)
    if factor < 1:
        for p in held:
            p.grad.mul_(factor)


def epoch(network, draw, optimizer, updates, gather):
    for _ in range(updates):
        for _ in range(gather):
            x, y = draw()
            loss = nn.functional.mse_loss(network(x), y) / gather
            loss.backward()
        bound(network.parameters(), 0.1)
        optimizer.step()
        optimizer.zero_grad()


def one_length(network, draw, optimizer, updates, gather):
    for _ in range(updates):
        for _ in range(gather):
            x, y = draw()
            loss = nn.functional.mse_loss(network(x), y)
            loss.backward()
        length = torch.norm(torch.stack([p.grad.norm() for p in network.parameters()]))
        for p in network.parameters():
            p.grad /= length
        optimizer.step()
        optimizer.zero_grad()
