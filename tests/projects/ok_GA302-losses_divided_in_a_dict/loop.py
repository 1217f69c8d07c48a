"""The losses are divided in a loop over a dict in another file; scaled gradients are clipped at a scaled bound."""

import torch
from helpers import clip_gradients, extract_loss


class Loop:
    def __init__(self, model, optimizer, stream, cfg):
        self.model = model
        self.optimizer = optimizer
        self.stream = stream
        self.cfg = cfg
        self.scaler = torch.amp.GradScaler("cpu", enabled=cfg.fp16)

    def run(self):
        for i in range(self.cfg.updates * self.cfg.every):
            if i % self.cfg.every == 0:
                self.optimizer.zero_grad()
            report = self.model(next(self.stream))
            loss = extract_loss(report, self.cfg.every)
            self.scaler.scale(loss).backward()
            if (i + 1) % self.cfg.every:
                continue
            clip_gradients(self.model, self.cfg.max_norm, scale=self.scaler.get_scale())
            self.scaler.step(self.optimizer)
            self.scaler.update()
