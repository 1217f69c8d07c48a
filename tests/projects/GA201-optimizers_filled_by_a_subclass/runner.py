"""The optimizers stand in a dictionary that whoever derives from the runner fills."""

# observe: params
from torch import nn


class Runner:
    def __init__(self, settings):
        self.settings = settings
        self.optimizers = {}
        self.seen = 0

    def learn(self, net, batch):
        self.seen += 1
        nn.functional.mse_loss(net(batch), batch[:, :2] + 1).backward()  # expect: GA201 "without 1/N"
        if self.seen % self.settings.accum == 0:
            for name in self.optimizers:
                self.optimizers[name].step()
                self.optimizers[name].zero_grad()

    def train(self, net, batches):
        for batch in batches:
            self.learn(net, batch)
