"""Each mean is weighed by its share of the window's tokens, in a function that checks its numbers first."""

import torch
from data import batch_of
from torch import nn


def share(valid, total):
    if valid <= 0 or total < valid:
        raise ValueError("no tokens")
    return valid / total


def fit(net, dataset, order, size, every):
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    cursor = 0
    while cursor < len(order):
        indices = order[cursor : cursor + size * every]
        total = sum(int(dataset[k]["labels"].ne(-100).sum()) for k in indices)
        if total <= 0:
            raise ValueError("an empty window")
        optimizer.zero_grad()
        for offset in range(0, len(indices), size):
            batch = {key: value.clone() for key, value in batch_of(dataset, indices[offset : offset + size]).items()}
            valid = int(batch["labels"].ne(-100).sum())
            loss = nn.functional.cross_entropy(net(batch["inputs"]), batch["labels"], ignore_index=-100)
            if loss.numel() != 1:
                raise ValueError("no scalar")
            torch.autograd.backward(loss * share(valid, total))
        optimizer.step()
        cursor += len(indices)
