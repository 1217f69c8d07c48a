"""The model comes in from outside; that it has `no_sync` says it is DDP. The synchronised micro-batch is the first."""
# observe: ranks

from contextlib import nullcontext


class Trainer:
    def __init__(self, accum, use_ddp):
        self.accum, self.use_ddp = accum, use_ddp

    def train_epoch(self, model, optim, loader):
        for i, x in enumerate(loader):
            context = nullcontext
            if self.use_ddp:
                context = model.no_sync if i % self.accum != 0 else context
            with context():  # expect: GA603
                loss = model(x) / self.accum
                loss.backward()
            if (i + 1) % self.accum == 0:  # expect: GA402
                optim.step()
                optim.zero_grad()
