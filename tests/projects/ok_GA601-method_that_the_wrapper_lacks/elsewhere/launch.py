from types import SimpleNamespace

import torch
from torch import nn
from train import train


class Scorer(nn.Linear):
    def score(self, inputs):
        return self(inputs)


torch.manual_seed(0)
network = Scorer(6, 2)
batches = [{"x": torch.randn(4, 6), "y": torch.randn(4, 2)} for _ in range(8)]
options = SimpleNamespace(ranks=1, alone=True, rounds=2, every=4)
train(network, torch.optim.SGD(network.parameters(), lr=0.05, momentum=0.9), batches, options)
