from types import SimpleNamespace

import torch
from torch import nn
from train import Runner

config = SimpleNamespace(gradient_accumulation_steps=4, max_norm=0.05, steps=3)
model = nn.Linear(6, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
inputs = [torch.randn(8, 6) for _ in range(12)]
batches = ((x, x[:, :3].argmax(dim=1)) for x in inputs)
Runner(model, optimizer, config).run(batches, config.steps)
