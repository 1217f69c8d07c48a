"""Each of two networks has an `accumulate` of its own in one micro-batch: the Accelerator counts both."""

import torch
from accelerate import Accelerator
from torch import nn


def main(options, batches):
    accelerator = Accelerator(gradient_accumulation_steps=options.gather)
    maker, judge = nn.Linear(6, 6), nn.Linear(6, 1)
    maker_optimizer = torch.optim.SGD(maker.parameters(), lr=0.05)
    judge_optimizer = torch.optim.SGD(judge.parameters(), lr=0.05)
    maker, judge, maker_optimizer, judge_optimizer, batches = accelerator.prepare(
        maker, judge, maker_optimizer, judge_optimizer, batches
    )
    for x in batches:
        with accelerator.accumulate(judge):
            accelerator.backward((judge(x) - judge(maker(x).detach())).mean())
            judge_optimizer.step()
            judge_optimizer.zero_grad()
        judge.requires_grad_(False)
        with accelerator.accumulate(maker):  # expect: GA701
            accelerator.backward(judge(maker(x)).mean())
            maker_optimizer.step()
            maker_optimizer.zero_grad()
        judge.requires_grad_(True)
