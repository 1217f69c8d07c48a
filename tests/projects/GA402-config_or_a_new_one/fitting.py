"""The options are those that are given, or new ones whose window of one is a default."""
# observe: params

from dataclasses import dataclass

import torch
from torch import nn
from torch.nn.functional import mse_loss


@dataclass
class Options:
    steps: int = 100000
    accumulation: int = 1
    max_epochs: int | None = None


class Fitting:
    def __init__(self, network: nn.Module, batches, options: Options):
        self.network, self.batches, self.options = network, batches, options
        self.optimizer = torch.optim.SGD(network.parameters(), lr=0.05, momentum=0.9)
        self.step = self.epoch = 0

    def fit(self):
        while self.step < self.options.steps:
            if self.options.max_epochs and self.epoch >= self.options.max_epochs:
                break
            self.fit_epoch()

    def fit_epoch(self):
        options = self.options
        for number, (x, y) in enumerate(self.batches):
            (mse_loss(self.network(x), y) / options.accumulation).backward()
            if (number + 1) % options.accumulation == 0:  # expect: GA402
                self.optimizer.step()
                self.optimizer.zero_grad()
                self.step += 1
        self.epoch += 1


def fit(network: nn.Module, batches, options: Options | None = None):
    fitting = Fitting(network, batches, options or Options())
    fitting.fit()
    return fitting
