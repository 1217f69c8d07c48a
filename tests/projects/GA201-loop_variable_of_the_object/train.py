"""The loops count in attributes, and a step's guard asks one of them."""
# observe: params

import torch
from torch import nn


class Trainer:
    def __init__(self, net, accumulate):
        self.net, self.accumulate = net, accumulate
        self.optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

    def fit(self, loader, epochs):
        for self.epoch in range(epochs):
            for self.iteration, batch in enumerate(loader):
                self.learn(batch, len(loader))

    def learn(self, batch, total):
        inputs, wanted = batch
        loss = nn.functional.mse_loss(self.net(inputs), wanted)
        loss.backward()  # expect: GA201
        if (self.iteration + 1) % self.accumulate == 0 or self.iteration + 1 == total:
            self.optimizer.step()
            self.optimizer.zero_grad()
