"""The judge gathers some batches; the painter's step at the boundary fills its gradients anew, after they were cleared."""
# observe: params

import torch
from torch import nn


def train(batches, gather):
    painter, judge = nn.Linear(3, 6), nn.Linear(6, 1)
    painter_optimizer = torch.optim.SGD(painter.parameters(), lr=0.05, momentum=0.9)
    judge_optimizer = torch.optim.SGD(judge.parameters(), lr=0.05, momentum=0.9)
    for number, real in enumerate(batches, start=1):
        last = number % gather == 0
        judged = judge(painter(torch.randn(len(real), 3)).detach()).mean() - judge(real).mean()
        (judged / gather).backward()
        if last:
            judge_optimizer.step()
            judge_optimizer.zero_grad()
            painted = -judge(painter(torch.randn(8, 3))).mean()
            painted.backward()  # expect: GA107 "clear them after `painter_optimizer` has stepped"
            painter_optimizer.step()
            painter_optimizer.zero_grad()
