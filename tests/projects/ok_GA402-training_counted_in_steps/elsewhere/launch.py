"""Calls the training once."""

from types import SimpleNamespace

import torch
from train import make, train

settings = SimpleNamespace(num_updates=8, gather=4, rate=0.05)
net, sgd = make(settings)
train(settings, net, iter([torch.randn(8, 6) for _ in range(8)]), sgd)
