"""A method called `update_average` keeps the running mean of the loss; no weight is averaged."""

import torch
from torch import nn


class Fitter:
    def __init__(self, network, gather):
        self.network, self.gather, self.seen, self.mean_loss = network, gather, 0, 0.0
        self.optimizer = torch.optim.SGD(network.parameters(), lr=0.05)

    def one(self, x):
        loss = self.network(x).pow(2).mean()
        (loss / self.gather).backward()
        if self.seen % self.gather == 0:
            self.optimizer.step()
            self.optimizer.zero_grad()
        return loss.detach()

    def update_average(self, loss, mean):
        return mean + (float(loss) - mean) / self.seen

    def fit(self, batches):
        for x in batches:
            self.seen += 1
            loss = self.one(x)
            self.mean_loss = self.update_average(loss, self.mean_loss)


if __name__ == "__main__":
    Fitter(nn.Linear(6, 2), 4).fit([torch.randn(8, 6) for _ in range(8)])
