from types import SimpleNamespace

import torch
from torch import nn
from train import fit


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(6, 3)

    def forward(self, x, y):
        return SimpleNamespace(loss=nn.functional.cross_entropy(self.head(x), y))


torch.manual_seed(0)
net = Net()
batches = [{"x": torch.randn(4, 6), "y": torch.randint(0, 3, (4,))} for _ in range(8)]
fit(net, torch.optim.SGD(net.parameters(), lr=0.1), batches, SimpleNamespace(rounds=2, last_batch=0), 4)
