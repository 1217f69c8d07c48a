"""The step is an object that is called with each loss, counts them, and is bounded by what its caller gives."""
# observe: params

import torch
from torch.nn.functional import mse_loss


class Stepping:
    def __init__(self, optimizer, every):
        self.scaler = torch.amp.GradScaler("cpu")
        self.optimizer, self.every, self.seen = optimizer, every, 0

    def __call__(self, loss, parameters, bound=None):
        self.scaler.scale(loss).backward()
        self.seen += 1
        if self.seen < self.every:
            return None
        self.seen = 0
        if bound is not None:
            torch.nn.utils.clip_grad_norm_(parameters, bound)  # expect: GA302
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.optimizer.zero_grad()
        return True


def fit(network, batches, options):
    move = Stepping(torch.optim.SGD(network.parameters(), lr=0.05, momentum=0.9), options.every)
    for x, y in batches:
        move(mse_loss(network(x), y) / options.every, network.parameters(), bound=options.bound)
