"""An optimizer of the project's own, with its schedule."""

import torch
from torch.optim import Optimizer


class Decay:
    def rate(self, step):
        return 1 / (1 + float(step))


class Decayed(Optimizer):
    def __init__(self, params, lr):
        super().__init__(params, {"lr": lr, "steps": 0, "schedule": Decay()})

    @torch.no_grad()
    def step(self, closure=None):
        loss = closure() if closure is not None else None
        for group in self.param_groups:
            rate = group["lr"] * group["schedule"].rate(group["steps"])
            for p in group["params"]:
                if p.grad is not None:
                    p.add_(p.grad, alpha=-rate)
            group["steps"] += 1
        return loss

    def get_lr(self):
        lr = []
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    lr.append(group["lr"] * group["schedule"].rate(group["steps"]))
        return lr
