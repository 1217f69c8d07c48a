"""What looks like a mean and is a sum: one number counts itself, and means of sequences are added up."""

import torch
from torch import nn


def fit(net, batches, every):
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for index, (inputs, labels, kept) in enumerate(batches):
        loss = (nn.functional.cross_entropy(net(inputs), labels, reduction="none") * kept).sum()
        (loss / loss.numel()).backward()
        if (index + 1) % every == 0 or index + 1 == len(batches):
            optimizer.step()
            optimizer.zero_grad()


def fit_sequences(net, batches, every):
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for index, (inputs, labels, kept) in enumerate(batches):
        losses = nn.functional.cross_entropy(net(inputs), labels, reduction="none")
        each = (losses * kept).sum(dim=1) / kept.sum(dim=1)
        each.sum().backward()
        if (index + 1) % every == 0 or index + 1 == len(batches):
            optimizer.step()
            optimizer.zero_grad()


def fit_tokens(net, batches, every):
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for index, (inputs, labels, kept) in enumerate(batches):
        losses = nn.functional.cross_entropy(net(inputs), labels, reduction="none")
        mean = (losses * kept).sum() / kept.sum()
        (mean * kept.sum()).backward()
        if (index + 1) % every == 0 or index + 1 == len(batches):
            optimizer.step()
            optimizer.zero_grad()
