"""A wrapper that another package defines keeps the parameters, runs backward, clears and steps."""

import torch
from precision import Precision
from torch import nn


class Loop:
    def __init__(self, net, rate, part):
        self.net = net
        self.part = part
        self.precision = Precision(net=net)
        self.opt = torch.optim.AdamW(self.precision.parameters_kept, lr=rate)

    def run(self, batches):
        for batch in batches:
            self.all_parts(batch)
            self.precision.optimize(self.opt)

    def all_parts(self, batch):
        self.precision.zero_grad()
        for start in range(0, batch.shape[0], self.part):
            piece = batch[start : start + self.part]
            loss = nn.functional.mse_loss(self.net(piece), piece) * len(piece) / len(batch)
            self.precision.backward(loss)


if __name__ == "__main__":
    Loop(nn.Linear(5, 5), 0.01, 4).run([torch.randn(12, 5) for _ in range(3)])
