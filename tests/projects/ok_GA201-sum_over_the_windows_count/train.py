"""Sums over micro-batches, divided by what the whole batch holds; a mean times its own count is such a sum too."""

import torch
from torch import nn


def fit(net, batches, size):
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for inputs, labels, kept in batches:
        count = kept.sum()
        for part, wanted, mask in zip(inputs.split(size), labels.split(size), kept.split(size)):
            losses = nn.functional.cross_entropy(net(part), wanted, reduction="none")
            loss = (losses * mask).sum() / count
            loss.backward()
        optimizer.step()
        optimizer.zero_grad()


def fit_slices(net, batches, size):
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for inputs, labels, _ in batches:
        for start in range(0, len(inputs), size):
            part, wanted = inputs[start : start + size], labels[start : start + size]
            loss = nn.functional.cross_entropy(net(part), wanted) * len(part)
            (loss / len(inputs)).backward()
        optimizer.step()
        optimizer.zero_grad()
