"""A base class whose optimizer hook is a bare `return`, to be written by the user's subclass."""
# observe: params

import torch
from torch import nn


class Trainer(nn.Module):
    def __init__(self):
        super().__init__()
        self.optimizer = None

    def make_optimizer(self):
        """To be overridden."""
        return

    def fit(self, stream, updates, accumulation):
        if self.optimizer is None:
            self.optimizer = self.make_optimizer()
        self.optimizer.zero_grad()
        for i in range(updates * accumulation):
            loss = self(**next(stream)) / accumulation
            loss.backward()
            torch.nn.utils.clip_grad_norm_(self.parameters(), 0.05)  # expect: GA303
            if (i + 1) % accumulation == 0:
                self.optimizer.step()
                self.optimizer.zero_grad()
