"""The loss is 0 until the terms are added that the network's outputs allow."""
# observe: allreduces

import itertools

from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


class Distiller:
    def __init__(self, config, student):
        self.config = config
        self.student = student

    def wrap(self):
        if self.config.local_rank != -1:
            self.student = DDP(self.student)

    def losses(self, batch):
        outputs = self.student(batch)
        total_loss, told = 0, {}
        if "logits" in outputs:
            loss = nn.functional.mse_loss(outputs["logits"], batch["y"])
            total_loss += loss * self.config.weight
            told["logits"] = loss.item()
        return total_loss, told

    def train(self, optimizer, loader, updates):
        self.wrap()
        optimizer.zero_grad()
        for step, batch in enumerate(itertools.cycle(loader)):
            total_loss, _ = self.losses(batch)
            total_loss /= self.config.gradient_accumulation_steps
            total_loss.backward()  # expect: GA601
            if (step + 1) % self.config.gradient_accumulation_steps == 0:
                optimizer.step()
                optimizer.zero_grad()
            if step + 1 >= updates * self.config.gradient_accumulation_steps:
                break
