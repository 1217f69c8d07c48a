"""The Accelerator and the step of one micro-batch; who calls it enters `accumulate`."""

import torch
from accelerate import Accelerator
from torch import nn


class Learner:
    def __init__(self, net, every, rate=0.01):
        self.accelerator = Accelerator(gradient_accumulation_steps=every, cpu=True)
        self.optimizer = torch.optim.SGD(net.parameters(), lr=rate)
        self.net, self.optimizer = self.accelerator.prepare(net, self.optimizer)

    def step(self, features, target):
        loss = nn.functional.mse_loss(self.net(features), target)
        self.accelerator.backward(loss)
        self.optimizer.step()
        self.optimizer.zero_grad()
        return loss.detach()
