"""The optimizer is made by a function that the package of helpers takes from one of its files."""
# observe: params

from torch import nn

from . import utils


def train(model, stream, updates, n=4):
    optimizer = utils.setup_optimizer(model, 0.1)
    for step in range(updates * n):
        x, y = next(stream)
        loss = nn.functional.mse_loss(model(x), y) / n
        loss.backward()
        if (step + 1) % n == 0:
            optimizer.step()  # expect: GA102
