"""The trainer's own `backward` takes the loss, and nobody divides it."""
# observe: params

import torch
from torch import nn


class Trainer:
    def __init__(self, model, accumulation):
        self.model, self.accumulation = model, accumulation
        self.optimizer = torch.optim.AdamW(model.parameters())
        self.count = 0

    def backward(self, loss):
        loss.backward()  # expect: GA201

    def fit(self, loader, epochs):
        for _ in range(epochs):
            for x, y in loader:
                loss = nn.functional.mse_loss(self.model(x), y)
                self.backward(loss)
                self.count += 1
                if self.count % self.accumulation == 0:
                    self.optimizer.step()
                    self.optimizer.zero_grad()
