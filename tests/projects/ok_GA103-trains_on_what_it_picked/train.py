"""Of each round only the hard samples are kept, one by one in a step of their mean."""

import torch
from torch.nn.functional import mse_loss


class Miner:
    def __init__(self, network, bound):
        self.network = network
        self.bound = bound
        self.optimizer = torch.optim.SGD(network.parameters(), lr=0.05, momentum=0.9)

    def learn(self, x, y, count):
        for k in range(len(x)):
            loss = mse_loss(self.network(x[k : k + 1]), y[k : k + 1])
            (loss / (len(x) * count)).backward()

    def train(self, rounds):
        for round_ in rounds:
            kept, wanted = [], []
            for x, y in round_:
                with torch.no_grad():
                    error = (self.network(x) - y).abs().mean()
                if error > self.bound:
                    kept.append(x)
                    wanted.append(y)
            self.optimizer.zero_grad()
            if len(kept) > 0:
                for x, y in zip(kept, wanted, strict=True):
                    self.learn(x, y, len(kept))
                self.optimizer.step()
