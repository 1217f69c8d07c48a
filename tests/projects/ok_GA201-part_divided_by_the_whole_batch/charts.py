"""A network that cuts a batch into parts and divides each part's sum by the number of samples in the whole batch."""

import torch
from torch import nn


class Charts(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.score = nn.Linear(width, 1)
        self.summed = nn.MSELoss(reduction="sum")

    def cut(self, samples):
        whole = len(samples)
        return [(2, {"x": torch.stack(samples[i : i + 2]), "batch_size": whole}) for i in range(0, whole, 2)]

    def compute_loss(self, part):
        score = self.score(part["x"])
        return self.summed(score, torch.zeros_like(score)) / part["batch_size"]
