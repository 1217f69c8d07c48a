"""Backward stands behind an attribute that holds a method, and the loss divides by the items of the whole window."""

import torch


class Trainer:
    def __init__(self, model, loss_fn, config):
        self.model = model
        self.loss_fn = loss_fn
        self.config = config
        self.optimizer = torch.optim.SGD(model.parameters(), lr=config.lr)
        self.run = self._plain
        if config.pipelined:
            self.schedule = config.make_schedule(model)
            self.scores = []

    def forward_backward(self, *, x, y, window_items):
        if self.config.pipelined:
            return self.pipelined_forward_backward(x=x, y=y)
        return self.run(x, y, window_items)

    def _plain(self, x, y, window_items):
        loss = self.loss_fn(self.model(x), y, window_items)
        loss.backward()
        return loss.detach()

    def pipelined_forward_backward(self, *, x, y):
        self.schedule.step(x, target=y, losses=self.scores)
        return torch.stack(self.scores).sum()

    def train_step(self, batches):
        self.optimizer.zero_grad()
        window = []
        items = torch.tensor(0)
        for _ in range(self.config.accumulation):
            x, y = next(batches)
            items += (y != 0).sum()
            window.append((x, y))
        total = torch.tensor(0.0)
        for x, y in window:
            total += self.forward_backward(x=x, y=y, window_items=items)
        self.optimizer.step()
        return total

    def train(self, loader):
        batches = iter(loader)
        for _ in range(self.config.steps):
            self.train_step(batches)
