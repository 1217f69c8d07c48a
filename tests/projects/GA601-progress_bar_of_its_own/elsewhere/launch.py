from types import SimpleNamespace

import torch
import torch.distributed as dist
from torch import nn
from trainer import Trainer

dist.init_process_group("gloo")
torch.manual_seed(0)
network = nn.Linear(6, 2)
optimizer = torch.optim.SGD(network.parameters(), lr=0.05, momentum=0.9)
loader = [(torch.randn(8, 6), torch.randn(8, 2)) for _ in range(8)]
trainer = Trainer(SimpleNamespace(nominal=32, batch=8), network, loader, optimizer, nn.MSELoss())
trainer.far(epochs=2)
trainer.near(epochs=1)
dist.destroy_process_group()
