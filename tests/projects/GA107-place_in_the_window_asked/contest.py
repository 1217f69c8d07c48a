"""A method is told its place in the window; each network clears at the first place, and the judge steps before the painter learns."""
# observe: params

import torch
from torch import nn


class Contest:
    def __init__(self, painter, judge, gather):
        self.painter, self.judge, self.gather = painter, judge, gather
        self.painting = torch.optim.SGD(painter.parameters(), lr=0.05, momentum=0.9)
        self.judging = torch.optim.SGD(judge.parameters(), lr=0.05, momentum=0.9)

    def batch(self, real, place):
        if place == 0:
            self.judging.zero_grad()
        painted = self.painter(torch.randn(len(real), 3))
        loss = (self.judge(painted.detach()).mean() - self.judge(real).mean()) / self.gather
        loss.backward()
        if place == self.gather - 1:  # expect: GA403
            self.judging.step()
        if place == 0:
            self.painting.zero_grad()
        loss = -self.judge(painted).mean() / self.gather
        loss.backward()  # expect: GA107 "requires_grad_(False)"
        if place == self.gather - 1:  # expect: GA403
            self.painting.step()

    def fit(self, batches, epochs):
        for _ in range(epochs):
            for number, real in enumerate(batches):
                self.batch(real, number % self.gather)
