"""A generator gives batches until so many steps, a number out of sight, are done."""
# observe: params

import argparse

import torch
from torch import nn
from torch.nn.functional import mse_loss


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("--iters", type=int, required=True)
    parser.add_argument("--accum", type=int, default=4)
    return parser.parse_args(["--iters", "15"])


class Trainer:
    def __init__(self, args, network, loader):
        self.args, self.network, self.loader = args, network, loader
        self.optimizer = torch.optim.SGD(network.parameters(), lr=0.05)
        self.done = 0

    def stream(self):
        while self.done <= self.args.iters:
            for batch in self.loader:
                if self.done > self.args.iters:
                    return
                yield batch
                self.done += 1

    def train(self):
        batches = self.stream()
        for number, (inputs, targets) in enumerate(batches, 1):
            loss = mse_loss(self.network(inputs), targets)
            loss.backward()  # expect: GA201
            if number % self.args.accum == 0:
                self.optimizer.step()
                self.optimizer.zero_grad()


if __name__ == "__main__":
    torch.manual_seed(0)
    data = [(torch.randn(4, 6), torch.randn(4, 2)) for _ in range(8)]
    Trainer(parse(), nn.Linear(6, 2), data).train()
