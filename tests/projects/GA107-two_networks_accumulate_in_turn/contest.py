"""Both networks gather as many batches as they should; what one of them learns from also goes through the other."""
# observe: params

import torch
from torch import nn


def train(batches, gather):
    painter, judge = nn.Linear(3, 6), nn.Linear(6, 1)
    painter_optimizer = torch.optim.SGD(painter.parameters(), lr=0.05, momentum=0.9)
    judge_optimizer = torch.optim.SGD(judge.parameters(), lr=0.05, momentum=0.9)
    for number, real in enumerate(batches, start=1):
        judged = (judge(painter(torch.randn(len(real), 3)).detach()).mean() - judge(real).mean()) / gather
        judged.backward()
        if number % gather == 0:
            judge_optimizer.step()
            judge_optimizer.zero_grad()
        painted = -judge(painter(torch.randn(len(real), 3))).mean() / gather
        painted.backward()  # expect: GA107 "requires_grad_(False)"
        if number % gather == 0:
            painter_optimizer.step()
            painter_optimizer.zero_grad()
