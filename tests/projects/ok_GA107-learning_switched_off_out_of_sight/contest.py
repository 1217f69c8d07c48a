"""Another package keeps the judge still while the painter learns: by a call, and by a context."""

import torch
from stillness import learns, still
from torch import nn


def by_call(batches, gather):
    painter, judge = nn.Linear(3, 6), nn.Linear(6, 1)
    painter_optimizer = torch.optim.SGD(painter.parameters(), lr=0.05, momentum=0.9)
    judge_optimizer = torch.optim.SGD(judge.parameters(), lr=0.05, momentum=0.9)
    for number, real in enumerate(batches, start=1):
        judged = (judge(painter(torch.randn(len(real), 3)).detach()).mean() - judge(real).mean()) / gather
        judged.backward()
        if number % gather == 0:
            judge_optimizer.step()
            judge_optimizer.zero_grad()
        learns(judge, False)
        painted = -judge(painter(torch.randn(len(real), 3))).mean() / gather
        painted.backward()
        learns(judge, True)
        if number % gather == 0:
            painter_optimizer.step()
            painter_optimizer.zero_grad()


def by_context(batches, gather):
    painter, judge = nn.Linear(3, 6), nn.Linear(6, 1)
    painter_optimizer = torch.optim.SGD(painter.parameters(), lr=0.05, momentum=0.9)
    judge_optimizer = torch.optim.SGD(judge.parameters(), lr=0.05, momentum=0.9)
    for number, real in enumerate(batches, start=1):
        judged = (judge(painter(torch.randn(len(real), 3)).detach()).mean() - judge(real).mean()) / gather
        judged.backward()
        if number % gather == 0:
            judge_optimizer.step()
            judge_optimizer.zero_grad()
        with still(judge):
            painted = -judge(painter(torch.randn(len(real), 3))).mean() / gather
            painted.backward()
        if number % gather == 0:
            painter_optimizer.step()
            painter_optimizer.zero_grad()
