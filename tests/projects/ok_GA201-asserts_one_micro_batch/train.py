"""The loop over micro-batches is left from an older version and asserts that there is one."""

import torch


class Trainer:
    def __init__(self, net, batches, micro):
        self.net = net
        self.batches = batches
        self.micro = micro
        self.optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

    def run(self):
        for batch, weights in self.batches:
            self.optimizer.zero_grad()
            for i in range(0, batch.shape[0], self.micro):
                assert i == 0
                loss = (self.net(batch[i : i + self.micro]) * weights).mean()
                loss.backward()
            self.optimizer.step()
