"""Pairs of samples between which nobody decides are left out before they are counted."""

# observe: params
import torch
from torch import nn


def train(net, pairs, optimizer, tree, accum):
    used = 0
    for pair in pairs:
        left = tree.map(lambda part: part[:, 0], pair)
        right = tree.map(lambda part: part[:, 1], pair)
        if torch.all(left["liked"] == right["liked"]):
            continue
        better = (left["liked"] > right["liked"]).float() * 2 - 1
        loss = -nn.functional.logsigmoid(better * (net(left["x"]) - net(right["x"])).squeeze(-1)).mean()
        (loss / accum).backward()
        used += 1
        if used % accum == 0:  # expect: GA402
            optimizer.step()
            optimizer.zero_grad()
