"""The loop and the step stand here, the backward in a helper of another file."""
# observe: params

import torch
from helper import propagate


class Runner:
    def __init__(self, model, optimizer, config):
        self.model = model
        self.optimizer = optimizer
        self.config = config

    def run_train_step(self, batches):
        self.model.train()
        total = 0
        for _ in range(self.config.gradient_accumulation_steps):
            x, y = next(batches)
            loss = torch.nn.functional.cross_entropy(self.model(x), y)
            loss = propagate(loss, self.model, self.config.gradient_accumulation_steps, self.config.max_norm)  # expect: GA303
            total += loss.item()
        self.optimizer.step()
        self.optimizer.zero_grad()
        return total

    def run(self, batches, steps):
        for _ in range(steps):
            self.run_train_step(batches)
