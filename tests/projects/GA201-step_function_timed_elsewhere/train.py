"""What trains is a function of the loop, and a timer out of sight calls it."""
# observe: params

import torch
from timing import timed
from torch import nn


def train(network, loader, accum):
    optimizer = torch.optim.AdamW(network.parameters())
    for index, (x, y) in enumerate(loader):

        def train_step():
            loss = nn.functional.mse_loss(network(x), y)  # noqa: B023
            loss.backward()  # expect: GA201
            if (index + 1) % accum == 0 or index + 1 == len(loader):  # noqa: B023
                optimizer.step()
                optimizer.zero_grad()
            return float(loss)

        loss, seconds = timed(train_step)
        print(f"{loss:.3f} {seconds:.3f}")
