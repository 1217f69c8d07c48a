"""The optimizers of the module are made by a class of another file: they are the same ones in each training step."""

import lightning as L
from base import Trained


class Coder(Trained, L.LightningModule):
    def __init__(self, parts):
        super().__init__()
        self.automatic_optimization = False
        self.parts = parts

    def training_step(self, batch, batch_idx):
        optimizer = self.optimizers()
        loss = self.network(batch["x"]).square().mean()
        self.manual_backward(loss)  # expect: GA201 "`self.parts` = 4"
        if (batch_idx + 1) % self.parts == 0:
            optimizer.step()
            optimizer.zero_grad()


class Twice(Trained, L.LightningModule):
    def __init__(self, parts):
        super().__init__()
        self.automatic_optimization = False
        self.parts = parts

    def training_step(self, batch, batch_idx):
        first, _ = self.optimizers()
        terms = self.terms_of(batch)
        loss = sum(term for term in terms.values()) / self.parts
        self.manual_backward(loss / self.parts)  # expect: GA202
        if (batch_idx + 1) % self.parts == 0:
            first.step()
            first.zero_grad()
