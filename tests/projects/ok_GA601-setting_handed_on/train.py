"""One setting wraps the model and, handed on, chooses the context: with it on, three of four micro-batches hold back."""

from contextlib import nullcontext

import torch
from data import build, next_batch
from torch.nn.parallel import DistributedDataParallel as DDP


class Trainer:
    def __init__(self, accum, use_ddp=False):
        self.accum, self.use_ddp = accum, use_ddp

    def train_epoch(self, model, optim, updates):
        optim.zero_grad()
        for i in range(updates * self.accum):
            last = (i + 1) % self.accum == 0
            context = nullcontext
            if self.use_ddp:
                context = nullcontext if last else model.no_sync
            with context():
                loss = model(next_batch()).square().mean() / self.accum
                loss.backward()
            if last:
                optim.step()
                optim.zero_grad()


def main(**kwargs):
    use_ddp = kwargs.get("use_ddp", False)
    model = build(kwargs)
    if use_ddp:
        model = DDP(model)
    optim = torch.optim.AdamW(model.parameters())
    trainer = Trainer(kwargs.get("accum_grad", 1), use_ddp=use_ddp)
    for _ in range(kwargs.get("epochs", 10)):
        trainer.train_epoch(model, optim, updates=3)
