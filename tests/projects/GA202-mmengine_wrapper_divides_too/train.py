"""mmengine's OptimWrapper divides in `update_params`; its own `backward` leaves the division to the caller."""

import torch
from mmengine.optim import OptimWrapper
from torch import nn


def divided_twice(model, loader, epochs, n):
    wrapper = OptimWrapper(optimizer=torch.optim.SGD(model.parameters(), lr=0.1), accumulative_counts=n)
    for _ in range(epochs):
        for x, y in loader:
            loss = nn.functional.mse_loss(model(x), y) / n
            wrapper.update_params(loss)  # expect: GA202


def never_divided(model, loader, epochs, n):
    wrapper = OptimWrapper(torch.optim.SGD(model.parameters(), lr=0.1), accumulative_counts=n)
    for _ in range(epochs):
        for x, y in loader:
            loss = nn.functional.mse_loss(model(x), y)
            wrapper.backward(loss)  # expect: GA201
            if wrapper.should_update():
                wrapper.step()
                wrapper.zero_grad()
