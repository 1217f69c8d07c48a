from types import SimpleNamespace

import torch
from clips import fit
from torch import nn


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 2)

    def forward(self, frame, state):
        state = frame.new_zeros(len(frame), 2) if state is None else state
        state = self.layer(torch.cat([frame, state], dim=1))
        return state, state


torch.manual_seed(0)
network = Network()
optimizer = torch.optim.SGD(network.parameters(), lr=0.05, momentum=0.9)
stream = ((torch.randn(8, 3, 6), torch.randn(8, 3, 2)) for _ in range(12))
fit(network, optimizer, stream, SimpleNamespace(window=4, updates=3))
