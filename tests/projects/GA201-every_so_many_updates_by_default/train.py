"""One of two networks is trained every sixth update, by default: later than a short run would come to."""

# observe: params
import argparse

import torch
from torch import nn


class Pair:
    def __init__(self, options, batches):
        self.options, self.batches, self.every = options, iter(batches), options.every
        self.maker, self.copy = nn.Linear(6, 6), nn.Linear(6, 6)
        self.maker_optimizer = torch.optim.SGD(self.maker.parameters(), lr=0.05)
        self.copy_optimizer = torch.optim.SGD(self.copy.parameters(), lr=0.05)

    def update(self):
        batches = [next(self.batches) for _ in range(self.options.gather)]
        if self.turn % self.every == 0:
            for x in batches:
                loss = (self.maker(x) - x).pow(2).mean()
                loss.backward()  # expect: GA201
            self.maker_optimizer.step()
            self.maker_optimizer.zero_grad()
        for x in batches:
            loss = (self.copy(x) - x).pow(2).mean()
            (loss / self.options.gather).backward()
        self.copy_optimizer.step()
        self.copy_optimizer.zero_grad()

    def fit(self):
        for turn in range(1, self.options.turns + 1):
            self.turn = turn
            self.update()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--every", type=int, default=6)
    parser.add_argument("--gather", type=int, default=4)
    parser.add_argument("--turns", type=int, default=12)
    Pair(parser.parse_args([]), [torch.randn(8, 6) for _ in range(48)]).fit()
