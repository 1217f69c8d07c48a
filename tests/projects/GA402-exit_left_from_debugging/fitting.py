"""An `exit()` at the end of the loop's body, left from debugging: what the loop does without it is read."""

import torch
from torch.nn.functional import mse_loss


def fit(network, loader, options):
    optimizer = torch.optim.SGD(network.parameters(), lr=0.05, momentum=0.9)
    for _ in range(options.epochs):
        for index, (x, y) in enumerate(loader):
            loss = mse_loss(network(x), y) / options.every
            loss.backward()
            if (index + 1) % options.every == 0:  # expect: GA402
                optimizer.step()
                optimizer.zero_grad()
            print(loss)
            exit()
