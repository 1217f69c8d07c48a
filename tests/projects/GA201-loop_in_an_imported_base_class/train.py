"""Only the backward stands here: a quick look for step calls must not leave this file out."""
# observe: params

import torch
from data import batches, options
from lib.trainer import Trainer


class NetTrainer(Trainer):
    def train_step(self, batch):
        loss = torch.nn.functional.mse_loss(self.net(batch["x"]), batch["y"])
        loss.backward()  # expect: GA201
        return loss.item()


trainer = NetTrainer(torch.nn.Linear(8, 3), batches, options.accum, options.epochs)
trainer.start()
