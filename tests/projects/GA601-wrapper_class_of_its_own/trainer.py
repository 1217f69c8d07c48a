"""The trainer steps whatever optimizers the task has, each with a loss of its own, by a count of batches that goes on."""
# observe: allreduces

from spread import Spread


class Trainer:
    def __init__(self, task, accum, spread):
        self.accum, self.seen = accum, 0
        self.optimizers = task.configure_optimizers()
        self.task = Spread(task) if spread else task

    def batch(self, index, batch):
        for which, optimizer in enumerate(self.optimizers):
            if optimizer is None:
                continue
            loss = self.task(batch, which)
            if loss is None:
                continue
            loss = loss / self.accum
            if loss.requires_grad:
                loss.backward()  # expect: GA601
            if (self.seen + 1) % self.accum == 0:
                optimizer.step()
                optimizer.zero_grad()

    def fit(self, loader, total):
        while self.seen < total:
            for index, batch in enumerate(loader):
                self.batch(index, batch)
                self.seen += 1
