"""A manager that another package defines runs backward and is handed the optimizer for its step, in which it clears."""

import torch
from precise import Manager


class Loop:
    def __init__(self, net, n):
        self.net, self.n = net, n
        self.optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)

    def run(self, batches):
        manager = Manager()
        self.optimizer.zero_grad()
        for count in range(1, 12 // self.n * self.n + 1):
            loss = self.net(next(batches)).square().mean() / self.n
            manager.backward(loss)
            if count % self.n == 0:
                manager.step(self.optimizer)
