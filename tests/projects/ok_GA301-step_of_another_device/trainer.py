"""On a TPU the optimizer is stepped by its own library, and no CUDA scaler is in use there."""

import torch
from devices import is_tpu_available, tpu
from torch import nn


class Trainer:
    def __init__(self, net, optimizer, settings):
        self.net, self.optimizer, self.settings = net, optimizer, settings
        self.scaler = torch.amp.GradScaler("cuda") if settings.use_amp else None

    def train(self, batches, updates):
        for step in range(updates * self.settings.accum):
            batch = next(batches)
            loss = nn.functional.mse_loss(self.net(batch), batch[:, :2] + 1) / self.settings.accum
            if self.settings.use_amp:
                self.scaler.scale(loss).backward()
            else:
                loss.backward()
            if (step + 1) % self.settings.accum == 0:
                if self.settings.use_amp:
                    self.scaler.unscale_(self.optimizer)
                nn.utils.clip_grad_norm_(self.net.parameters(), 1e9)
                if is_tpu_available():
                    tpu.optimizer_step(self.optimizer)
                elif self.settings.use_amp:
                    self.scaler.step(self.optimizer)
                    self.scaler.update()
                else:
                    self.optimizer.step()
                self.net.zero_grad()
