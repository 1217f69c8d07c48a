"""Lightning's manual optimisation: the Trainer calls `training_step` for each batch, which clips each time."""

import lightning as L
import torch
from torch import nn


class Classifier(L.LightningModule):
    def __init__(self, accumulation):
        super().__init__()
        self.net = nn.Linear(8, 3)
        self.accumulation = accumulation
        self.automatic_optimization = False
        self.seen = 0

    def configure_optimizers(self):
        return torch.optim.AdamW(self.net.parameters())

    def training_step(self, batch, batch_idx):
        optimizer = self.optimizers()
        x, y = batch
        loss = nn.functional.cross_entropy(self.net(x), y) / self.accumulation
        self.manual_backward(loss)
        nn.utils.clip_grad_norm_(self.net.parameters(), 1.0)  # expect: GA303
        self.seen += 1
        if self.seen % self.accumulation == 0:
            optimizer.step()
            optimizer.zero_grad()
