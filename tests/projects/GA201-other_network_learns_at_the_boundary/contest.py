"""The judge gathers batches; the painter learns once at the boundary, and what that leaves in the judge is cleared."""
# observe: params

import torch
from torch import nn


def train(batches, gather):
    painter, judge = nn.Linear(3, 6), nn.Linear(6, 1)
    painting = torch.optim.SGD(painter.parameters(), lr=0.05, momentum=0.9)
    judging = torch.optim.SGD(judge.parameters(), lr=0.05, momentum=0.9)
    for number, real in enumerate(batches, start=1):
        judged = judge(painter(torch.randn(len(real), 3)).detach()).mean() - judge(real).mean()
        judged.backward()  # expect: GA201 "`gather` = 4 micro-batches"
        if number % gather == 0:
            judging.step()
            judging.zero_grad()
            painted = -judge(painter(torch.randn(8, 3))).mean()
            painted.backward()
            painting.step()
            painting.zero_grad()
            judging.zero_grad()
