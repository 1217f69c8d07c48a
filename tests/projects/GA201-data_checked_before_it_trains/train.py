"""The data are checked in ways that the code alone does not decide: what it reads passes."""
# observe: params

import torch
from reading import lines
from torch import nn


def position(template, slot):
    for index, token in enumerate(template or ()):
        if token == slot:
            return index
    return None


def pair(line, template):
    parts = line.split()
    if len(parts) < 2:
        raise ValueError(f"too short: {line}")
    if parts[0].isdigit() and parts[1].isdigit():
        return int(parts[0]), int(parts[1])
    source, target = position(template, "{s}"), position(template, "{t}")
    if source is None or target is None:
        raise ValueError("there is no template for such a line")
    return int(parts[source]), int(parts[target])


def train(args):
    pairs = []
    for line in lines(args.path):
        pairs.append(pair(line, args.template))
    network = nn.Linear(6, 2)
    optimizer = torch.optim.AdamW(network.parameters())
    for _ in range(args.updates):
        optimizer.zero_grad()
        for _ in range(args.accum):
            x = torch.randn(8, 6)
            loss = nn.functional.mse_loss(network(x), x[:, :2].exp() + len(pairs))
            loss.backward()  # expect: GA201
        optimizer.step()
