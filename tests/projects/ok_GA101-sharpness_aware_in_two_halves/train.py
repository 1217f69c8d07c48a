"""Sharpness-aware minimisation as an optimizer: the first half clears what moved the weights, the second steps."""

import torch
from torch import nn


class Sharp(torch.optim.Optimizer):
    def __init__(self, params, inner, rho=0.05, **rest):
        super().__init__(params, {"rho": rho, **rest})
        self.inner = inner(self.param_groups, **rest)
        self.param_groups = self.inner.param_groups
        self.moved = {}

    @torch.no_grad()
    def first_step(self, zero_grad=False):
        held = [p for group in self.param_groups for p in group["params"] if p.grad is not None]
        norm = torch.stack([p.grad.norm() for p in held]).norm()
        for p in held:
            self.moved[p] = p.grad * (0.05 / (norm + 1e-12))
            p.add_(self.moved[p])
        if zero_grad:
            self.zero_grad()

    @torch.no_grad()
    def second_step(self, zero_grad=False):
        for p, by in self.moved.items():
            p.sub_(by)
        self.inner.step()
        if zero_grad:
            self.zero_grad()


def each_batch(model, batches):
    optimizer = Sharp(model.parameters(), torch.optim.SGD, lr=0.1)
    for x, y in batches:
        nn.functional.mse_loss(model(x), y).backward()
        optimizer.first_step(zero_grad=True)
        nn.functional.mse_loss(model(x), y).backward()
        optimizer.second_step(zero_grad=True)


def each_window(model, batches, every):
    optimizer = Sharp(model.parameters(), torch.optim.SGD, lr=0.1)
    held = []
    for i, (x, y) in enumerate(batches):
        nn.functional.mse_loss(model(x), y).div(every).backward()
        held.append((x, y))
        if (i + 1) % every == 0:
            optimizer.first_step(zero_grad=True)
            for a, b in held:
                nn.functional.mse_loss(model(a), b).div(every).backward()
            optimizer.second_step(zero_grad=True)
            held = []
