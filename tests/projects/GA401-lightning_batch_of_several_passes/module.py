"""Each batch is passed several times; the number of the batch, which Lightning counts from 0, says when to step."""

import lightning as L
import torch
from torch import nn


class Refining(L.LightningModule):
    def __init__(self, every):
        super().__init__()
        self.net = nn.Linear(8, 8)
        self.automatic_optimization = False
        self.every = every

    def configure_optimizers(self):
        return torch.optim.AdamW(self.net.parameters(), lr=1e-4)

    def training_step(self, batch, batch_idx):
        optimizer = self.optimizers()
        guess = batch["noisy"]
        for _ in range(3):
            guess = self.net(guess.detach())
            loss = (guess - batch["clean"]).square().mean() / (3 * self.every)
            self.manual_backward(loss)
        if batch_idx % self.every == 0:  # expect: GA401
            optimizer.step()
            optimizer.zero_grad()
