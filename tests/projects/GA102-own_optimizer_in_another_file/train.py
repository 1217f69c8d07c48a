"""Trains with the project's own optimizer and never clears."""
# observe: params

from optimization import Descent
from torch import nn


def train(model, stream, updates, n=4):
    optimizer = Descent(model.parameters(), lr=0.1)
    for step in range(updates * n):
        x, y = next(stream)
        loss = nn.functional.mse_loss(model(x), y) / n
        loss.backward()
        if (step + 1) % n == 0:
            optimizer.step()  # expect: GA102
