"""The counter is moved by a method that what drives the object calls after each micro-batch."""

# observe: params
import torch
from torch import nn


class Learner:
    def __init__(self, network, gather, batches):
        self.network, self.gather, self.batches = network, gather, iter(batches)
        self.optimizer = torch.optim.SGD(network.parameters(), lr=0.05)
        self.turns = 0

    def learn(self, loss):
        if self.turns % self.gather == 0:
            loss.backward()  # expect: GA201
            self.optimizer.step()
            self.optimizer.zero_grad()
        else:
            loss.backward()  # expect: GA201

    def on(self):
        self.turns += 1

    def words(self):
        self.learn(self.network(next(self.batches)).pow(2).mean())
