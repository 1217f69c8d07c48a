"""The gradients stay multiplied by the loss scale when they are clipped, and so does the bound."""

import torch
from torch.nn.functional import mse_loss


def shorten(network, optimizer, bound, scale=1.0):
    if bound is None:
        return
    if hasattr(optimizer, "clip_grad_norm"):  # an optimizer that shards its state clips by itself
        optimizer.clip_grad_norm(bound * scale)
    else:
        torch.nn.utils.clip_grad_norm_(network.parameters(), bound * scale)


class Fitting:
    def __init__(self, options, network, optimizer):
        self.options, self.network, self.optimizer = options, network, optimizer
        self.scaler = torch.amp.GradScaler("cpu")

    def fit(self, stream):
        for number in range(1, self.options.updates * self.options.window + 1):
            x, y = next(stream)
            self.scaler.scale(mse_loss(self.network(x), y) / self.options.window).backward()
            if number % self.options.window == 0:
                shorten(self.network, self.optimizer, self.options.bound, scale=self.scaler.get_scale())
                self.scaler.step(self.optimizer)
                self.scaler.update()
                self.optimizer.zero_grad()
