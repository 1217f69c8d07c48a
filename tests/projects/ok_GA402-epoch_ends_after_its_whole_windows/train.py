"""A recipe is set up before it trains, and an epoch draws as many batches as make whole windows."""

import sys

import torch
from torch import nn
from torch.utils.data import DataLoader


class Recipe:
    def __init__(self, every, epochs, cap=None):
        self.every = every
        self.epochs = epochs
        self.cap = cap
        self.updates = 0

    def setup(self):
        self.net = nn.Linear(4, 2)
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)
        self.loader = DataLoader(torch.randn(20, 4), batch_size=2, drop_last=True)
        self.per_epoch = len(self.loader) // self.every
        if self.cap is not None and self.cap < self.per_epoch:
            self.per_epoch = self.cap

    def train(self):
        self.optimizer.zero_grad()
        for _ in range(self.epochs):
            done = self.updates % self.per_epoch
            batches = iter(self.loader)
            drawn = 0
            while done < self.per_epoch:
                try:
                    batch = next(batches)
                except StopIteration:
                    break
                loss = nn.functional.mse_loss(self.net(batch), batch[:, :2]) / self.every
                loss.backward()
                if (drawn + 1) % self.every == 0:
                    self.optimizer.step()
                    self.optimizer.zero_grad()
                    self.updates += 1
                    done += 1
                drawn += 1


def main(every=4):
    recipe = Recipe(every, epochs=2)
    recipe.setup()
    recipe.train()


if __name__ == "__main__":
    sys.exit(main())
