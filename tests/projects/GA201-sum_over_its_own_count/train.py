"""Sums over the tokens of a micro-batch, each divided by the count of the very tokens: means, which want 1/N."""
# observe: params

import torch
from torch import nn


def fit(net, batches, every):
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for index, (inputs, labels, kept) in enumerate(batches):
        losses = nn.functional.cross_entropy(net(inputs), labels, reduction="none")
        loss = (losses * kept).sum() / kept.sum().clamp(min=1)
        loss.backward()  # expect: GA201
        if (index + 1) % every == 0 or index + 1 == len(batches):
            optimizer.step()
            optimizer.zero_grad()


def fit_overlap(net, batches, every):
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for index, (inputs, wanted, _) in enumerate(batches):
        shown = torch.sigmoid(net(inputs))
        common = (shown * wanted).sum()
        loss = 1 - (2 * common + 1) / (shown.sum() + wanted.sum() + 1)
        loss.backward()  # expect: GA201
        if (index + 1) % every == 0 or index + 1 == len(batches):
            optimizer.step()
            optimizer.zero_grad()
