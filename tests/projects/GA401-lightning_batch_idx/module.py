"""The Trainer counts the batches from 0: the first window is one too long. The network's loss is a sum."""

import lightning as L
import torch
from network import Decoder


class Decoding(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = Decoder()
        self.automatic_optimization = False

    def configure_optimizers(self):
        return torch.optim.AdamW(self.net.parameters(), lr=1e-4)

    def training_step(self, batch, batch_idx: int):
        optimizer = self.optimizers()
        loss, accuracy = self.net.score(batch["x"], batch["y"])
        self.manual_backward(loss)
        if batch_idx > 0 and batch_idx % 4 == 0:  # expect: GA401
            optimizer.step()
            optimizer.zero_grad()
        self.log("accuracy", accuracy)
