from types import SimpleNamespace

import torch
from parts import fit, fit_all
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(6, 4), nn.Linear(4, 2)

    def forward(self, x):
        return self.head(self.body(x))


torch.manual_seed(0)
loader = [(torch.randn(8, 6), torch.randn(8, 2)) for _ in range(6)]
fit(Net(), loader, SimpleNamespace(n=4, epochs=3, unfreeze=1))
fit_all(Net(), loader, SimpleNamespace(n=4, epochs=3))
