"""A flag says, after a look at each parameter, whether the step may be taken: counted, asked in a method, told by a function."""
# observe: params

import torch
from torch import nn


def broken(network):
    for parameter in network.parameters():
        if parameter.grad is not None and parameter.grad.isnan().sum() > 0:
            return True
    return False


def counted(network, batches, optimizer, gather):
    optimizer.zero_grad()
    for number, (x, y) in enumerate(batches, start=1):
        loss = nn.functional.mse_loss(network(x), y)
        loss.backward()  # expect: GA201
        usable = True
        for parameter in network.parameters():
            if parameter.grad is not None:
                if (1 - torch.isfinite(parameter.grad).long()).sum() > 0:
                    usable = False
                    break
        if number % gather == 0:  # expect: GA403
            if usable is True:
                optimizer.step()
            optimizer.zero_grad()


def told(network, batches, optimizer, gather):
    optimizer.zero_grad()
    for number, (x, y) in enumerate(batches, start=1):
        loss = nn.functional.mse_loss(network(x), y)
        loss.backward()  # expect: GA201
        if number % gather == 0:  # expect: GA403
            if not broken(network):
                optimizer.step()
            optimizer.zero_grad()
