"""A batch is fetched ahead; `None` says that the one in hand is the last, and the window ends with it."""
# observe: params

import torch
from torch import nn


def train(model, loader, n, epochs):
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(epochs):
        batches = iter(loader)
        following = next(batches, None)
        seen = 0
        while following is not None:
            x, y = following
            following = next(batches, None)
            (nn.functional.mse_loss(model(x), y) / n).backward()
            seen += 1
            if seen % n == 0 or following is None:  # expect: GA205
                optimizer.step()
                optimizer.zero_grad()
