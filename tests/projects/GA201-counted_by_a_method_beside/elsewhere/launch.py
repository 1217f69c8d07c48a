"""Drives the learner."""

import torch
from torch import nn
from train import Learner

learner = Learner(nn.Linear(6, 2), 4, [torch.randn(8, 6) for _ in range(9)])
for _ in range(9):
    learner.words()
    learner.on()
