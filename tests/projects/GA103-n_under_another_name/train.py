"""Only the last of N micro-batches runs backward, and N has a name of its own in the function."""
# observe: params

import torch
from torch import nn


def fit(net, batches, args):
    every = args.accumulate
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for index, (inputs, wanted) in enumerate(batches):
        loss = nn.functional.mse_loss(net(inputs), wanted) / every
        if (index + 1) % every == 0:
            loss.backward()  # expect: GA103
            optimizer.step()
            optimizer.zero_grad()
