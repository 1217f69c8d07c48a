from types import SimpleNamespace

import torch
from fitting import fit
from torch import nn


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(6, 2)

    def forward(self, batch):
        wrong = (self.layer(batch["x"]) - batch["y"]) ** 2
        return {"losses": {"left": wrong[:, 0], "right": wrong[:, 1]}}


torch.manual_seed(0)
network = Network()
optimizer = torch.optim.SGD(network.parameters(), lr=0.05, momentum=0.9)
stream = ({"x": torch.randn(8, 6), "y": torch.randn(8, 2)} for _ in range(12))
fit(SimpleNamespace(window=4, updates=3), network, stream, optimizer)
