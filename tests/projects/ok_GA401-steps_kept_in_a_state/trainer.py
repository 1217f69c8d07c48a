"""The steps and the samples of a training are counted in a state that another file defines; both bound the loop."""

from state import Progress
from torch import nn


class Trainer:
    def __init__(self, net, optimizer, batches, settings):
        self.net, self.optimizer, self.batches, self.settings = net, optimizer, batches, settings

    def prepare(self):
        self.progress = Progress()

    def learn(self):
        progress = self.progress
        batches = iter(self.batches)
        while progress.step < self.settings.steps and progress.samples < self.settings.max_samples:
            batch = next(batches)
            progress.step += 1
            progress.samples += self.settings.batch_size
            loss = nn.functional.mse_loss(self.net(batch), batch[:, :2])
            if self.settings.accum > 1:
                loss = loss / self.settings.accum
            loss.backward()
            if progress.step % self.settings.accum == 0:
                self.optimizer.step()
                self.optimizer.zero_grad()

    def warm_up(self):
        progress = self.progress
        batches = iter(self.batches)
        for _ in range(self.settings.train_steps):
            batch = next(batches)
            progress.step += 1
            loss = nn.functional.mse_loss(self.net(batch), batch[:, :2]) / self.settings.accum
            loss.backward()
            if progress.step % self.settings.accum == 0:
                self.optimizer.step()
                self.optimizer.zero_grad()

    def run(self):
        self.prepare()
        self.warm_up()
        self.prepare()
        self.learn()
