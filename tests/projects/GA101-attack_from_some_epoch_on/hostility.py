"""A hostile pass at moved weights, which clears what the window has gathered."""

import torch
from torch.nn.functional import mse_loss


class Hostile:
    def __init__(self, model, optimizer, rate=1.0):
        self.model, self.optimizer, self.rate = model, optimizer, rate
        self.kept = {}

    def attack_backward(self, x, y):
        if self.rate == 0:
            return
        self._keep()
        self._shift()
        loss = mse_loss(self.model(x), y)
        self.optimizer.zero_grad()
        loss.backward()
        self._restore()

    def _keep(self):
        for name, p in self.model.named_parameters():
            if p.requires_grad and p.grad is not None:
                self.kept[name] = p.data.clone()

    def _shift(self):
        for name, p in self.model.named_parameters():
            if p.requires_grad and p.grad is not None:
                p.data.add_(self.rate * p.grad / (torch.norm(p.grad) + 1e-6))

    def _restore(self):
        for name, p in self.model.named_parameters():
            if name in self.kept:
                p.data = self.kept[name]
        self.kept = {}
