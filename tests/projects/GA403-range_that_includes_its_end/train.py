"""`range(first, total + 1)` includes the total, so it counts from 1: nothing here says that `first` is 0."""

# observe: params
import torch
from base import Between
from torch import nn


class Task(Between):
    def run(self):
        self.optimizer.zero_grad()
        for number in range(self.first, self.total + 1):
            x = next(self.batches)
            loss = self.network(x).pow(2).mean() / self.gather
            loss.backward()
            if number % self.gather == 0:  # expect: GA403
                self.optimizer.step()
                self.optimizer.zero_grad()


def start(ends):
    network = nn.Linear(6, 2)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.05)
    Task(ends, network, optimizer, 4, iter([torch.randn(8, 6) for _ in range(10)])).run()


if __name__ == "__main__":
    start((1, 10))
