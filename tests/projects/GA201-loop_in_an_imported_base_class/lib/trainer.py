"""The loop and the optimizer step live in the base class."""

import torch


class Trainer:
    def __init__(self, net, batches, accum, epochs):
        self.net, self.batches = net, batches
        self.accum, self.epochs = accum, epochs
        self.optim = torch.optim.Adam(net.parameters(), lr=1e-4)

    def train_step(self, batch):
        raise NotImplementedError

    def start(self):
        for _ in range(self.epochs):
            for i, batch in enumerate(self.batches):
                self.train_step(batch)
                if i % self.accum == self.accum - 1 or i == len(self.batches) - 1:
                    self.optim.step()
                    self.optim.zero_grad()
