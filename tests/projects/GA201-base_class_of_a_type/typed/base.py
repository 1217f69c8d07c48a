from typing import Generic, TypeVar

from torch import nn

N = TypeVar("N", bound=nn.Module)


class Trainer(Generic[N]):
    def __init__(self, net: N, optimizer, batches, accum=4):
        self.net, self.optimizer, self.batches, self.accum = net, optimizer, batches, accum
        self.done = 0

    def close(self):
        self.done += 1
        if self.done % self.accum != 0:
            return
        self.optimizer.step()
        self.optimizer.zero_grad()

    def train_step(self, batch):
        raise NotImplementedError

    def learn(self, epochs):
        for _ in range(epochs):
            for batch in self.batches:
                self.train_step(batch)
