"""Only the clear waits for a window: the step runs after each batch, over all gradients since the window began."""
# observe: params

import torch
from torch.nn.functional import mse_loss


def fit_epoch(network, batches, optimizer, options):
    n = options.accum_iter
    optimizer.zero_grad()
    for number, (x, y) in enumerate(batches):
        loss = mse_loss(network(x), y)
        loss /= n
        loss.backward()
        if options.bound:
            torch.nn.utils.clip_grad_norm_(network.parameters(), options.bound)
        optimizer.step()  # expect: GA102 "cleared after every 4"
        if (number + 1) % n == 0:
            optimizer.zero_grad()


def fit(network, batches, options):
    optimizer = torch.optim.SGD(network.parameters(), lr=0.05, momentum=0.9)
    for _ in range(options.epochs):
        fit_epoch(network, batches, optimizer, options)
