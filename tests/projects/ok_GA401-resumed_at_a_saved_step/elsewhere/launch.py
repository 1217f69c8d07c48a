import tempfile
from pathlib import Path
from types import SimpleNamespace

import torch
from torch import nn
from train import train

torch.manual_seed(0)
stream = ((torch.randn(4, 6), torch.randn(4, 2)) for _ in range(16))
network = nn.Linear(6, 2)
optimizer = torch.optim.SGD(network.parameters(), lr=0.05, momentum=0.9)
with tempfile.TemporaryDirectory() as folder:
    train(network, optimizer, stream, SimpleNamespace(gather=4, updates=2, saved=Path(folder) / "saved.pt"))
    train(network, optimizer, stream, SimpleNamespace(gather=4, updates=4, saved=Path(folder) / "saved.pt"))
