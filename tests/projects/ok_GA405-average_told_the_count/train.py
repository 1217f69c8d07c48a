"""Moving averages that are told how many micro-batches there were, and move when they like."""

import torch
from elsewhere_average import Average
from torch.nn.functional import mse_loss


class Slow:
    def __init__(self, network, every):
        self.network, self.every = network, every
        self.kept = {name: value.clone() for name, value in network.state_dict().items()}

    def update(self, iteration):
        """Moves after every so many micro-batches."""
        if (iteration + 1) % self.every == 0:
            for name, value in self.network.state_dict().items():
                self.kept[name] = 0.9 * self.kept[name] + 0.1 * value


class Trainer:
    def __init__(self, network, loader, options):
        self.network, self.loader, self.options = network, loader, options
        self.optimizer = torch.optim.SGD(network.parameters(), lr=0.05, momentum=0.9)
        self.slow_ema = Slow(network, options.gather)
        self.other_ema = Average(network, options.gather)

    def run(self):
        iteration = 0
        for _ in range(self.options.updates):
            for _ in range(self.options.gather):
                x, y = next(self.loader)
                loss = mse_loss(self.network(x), y) / self.options.gather
                loss.backward()
                self.slow_ema.update(iteration)
                self.other_ema.update(iteration=iteration)
                iteration += 1
            self.optimizer.step()
            self.optimizer.zero_grad()
