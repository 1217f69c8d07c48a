"""`unscale_` is called a second time only where the scaler's own state says that it was not yet."""

import torch
from torch.amp.grad_scaler import OptState


class Trainer:
    def __init__(self, model, optimizer, stream, steps, grad_norm=1e3, grad_value=None):
        self.model = model
        self.optimizer = optimizer
        self.stream = stream
        self.steps = steps
        self.grad_norm = grad_norm
        self.grad_value = grad_value
        self.scaler = torch.amp.GradScaler("cpu")

    def rescale(self):
        if not isinstance(self.grad_norm, bool):
            self.scaler.unscale_(self.optimizer)
            return torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.grad_norm)
        return None

    def clip(self):
        if self.grad_value is not None:
            state = self.scaler._per_optimizer_states[id(self.optimizer)]
            if state["stage"] is not OptState.UNSCALED:
                self.scaler.unscale_(self.optimizer)
            torch.nn.utils.clip_grad_value_(self.model.parameters(), self.grad_value)

    def train(self, updates):
        for i in range(updates * self.steps):
            loss = self.model(next(self.stream)).square().mean() / self.steps
            self.scaler.scale(loss).backward()
            if (i + 1) % self.steps == 0:
                self.rescale()
                self.clip()
                self.scaler.step(self.optimizer)
                self.scaler.update()
                self.optimizer.zero_grad()
