"""Each batch goes to every optimizer of a list; what the whole run counts says when they step, and a flag what the first epoch skips."""

from torch import nn


class Runner:
    def __init__(self, task, optimizers, accumulation, limit, interval):
        self.task = task
        self.optimizers = optimizers
        self.accumulation = accumulation
        self.limit = limit
        self.interval = interval
        self.done = 0
        self.fresh = True

    def run(self):
        loader = self.task.loader()
        while True:
            for index, batch in enumerate(loader):
                if self.done % self.interval == 0 and not self.fresh:
                    self.task.validate()
                self.one(index, batch)
                self.fresh = False
                self.done += 1
                if self.done > self.limit:
                    break
            if self.done > self.limit:
                break

    def one(self, index, batch):
        for k, optimizer in enumerate(self.optimizers):
            if optimizer is None:
                continue
            prediction, target = self.task.forward(batch, index, k)
            loss = nn.functional.mse_loss(prediction, target) / self.accumulation
            loss.backward()
            if (self.done + 1) % self.accumulation == 0:
                optimizer.step()
                optimizer.zero_grad()
