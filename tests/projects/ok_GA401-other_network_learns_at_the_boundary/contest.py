"""The painter learns once at the judge's boundary, from a loss of its own weight; or the judge once at the painter's."""

import torch
from torch import nn


def gathers_for_the_judge(batches, gather):
    painter, judge = nn.Linear(3, 6), nn.Linear(6, 1)
    painting = torch.optim.SGD(painter.parameters(), lr=0.05, momentum=0.9)
    judging = torch.optim.SGD(judge.parameters(), lr=0.05, momentum=0.9)
    for number, real in enumerate(batches, start=1):
        judged = judge(painter(torch.randn(len(real), 3)).detach()).mean() - judge(real).mean()
        (judged / gather).backward()
        if number % gather == 0:
            judging.step()
            painted = -judge(painter(torch.randn(8, 3))).mean()
            painted.backward()
            painting.step()
            painting.zero_grad()
            judging.zero_grad()


def gathers_for_the_painter(batches, gather):
    painter, judge = nn.Linear(3, 6), nn.Linear(6, 1)
    painting = torch.optim.SGD(painter.parameters(), lr=0.05, momentum=0.9)
    judging = torch.optim.SGD(judge.parameters(), lr=0.05, momentum=0.9)
    for number, real in enumerate(batches, start=1):
        painted = -judge(painter(torch.randn(8, 3))).mean()
        (painted / gather).backward()
        if number % gather == 0:
            painting.step()
            painting.zero_grad()
            judging.zero_grad()
            judged = judge(painter(torch.randn(len(real), 3)).detach()).mean() - judge(real).mean()
            judged.backward()
            judging.step()
            judging.zero_grad()
