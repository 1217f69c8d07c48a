"""The guard asks a counter that only the guard moves; what then piles up is undivided, and synchronised each time."""

import torch
from lightning.fabric import Fabric


class Trainer:
    def __init__(self, accum):
        self.fabric = Fabric(devices=2, strategy="ddp")
        self.accum = accum
        self.updates = 0

    def fit(self, model, loader):
        model, optimizer = self.fabric.setup(model, torch.optim.SGD(model.parameters(), lr=0.1))
        for batch in loader:
            due = self.updates % self.accum == 0
            self.train_step(model, batch)
            if due:  # expect: GA401
                optimizer.step()
                optimizer.zero_grad()
            self.updates += int(due)

    def train_step(self, model, batch):
        loss = model(batch).mean()
        # expect: GA601
        self.fabric.backward(loss)  # expect: GA201
        return loss
