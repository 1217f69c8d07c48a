"""The wrapper's own flag says whether this batch ends a window; it starts anew each epoch, and the tail is left over."""
# observe: params

import torch
from torch import nn
from torch.nn.functional import mse_loss
from torch.nn.parallel import DistributedDataParallel


class Fitting:
    def __init__(self, network: nn.Module, batches, options):
        self.batches, self.options = batches, options
        self.network = DistributedDataParallel(network) if options.ranks > 1 else network
        self.optimizer = torch.optim.SGD(network.parameters(), lr=0.05, momentum=0.9)

    def fit(self):
        for _ in range(self.options.epochs):
            for number, (x, y) in enumerate(self.batches, 1):
                self.network.require_backward_grad_sync = number % self.options.window == 0
                (mse_loss(self.network(x), y) / self.options.window).backward()
                if self.network.require_backward_grad_sync:  # expect: GA402
                    self.optimizer.step()
                    self.optimizer.zero_grad()
