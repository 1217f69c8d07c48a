"""A generator groups N batches; their losses are summed undivided."""
# observe: params

import torch
from torch import nn


def windows(loader, n):
    held = []
    for batch in loader:
        held.append(batch)
        if len(held) == n:
            yield held
            held = []


def train(model, loader, n, epochs):
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(epochs):
        for group in windows(loader, n):
            optimizer.zero_grad()
            for x, y in group:
                loss = nn.functional.mse_loss(model(x), y)
                loss.backward()  # expect: GA201
            optimizer.step()
