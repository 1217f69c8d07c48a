from types import SimpleNamespace

import torch
from torch import nn
from trainer import Trainer

torch.manual_seed(0)
batches = [torch.randn(8, 6) for _ in range(10)]
Trainer(SimpleNamespace(device="cpu", accum=4), model_init=lambda: nn.Linear(6, 2)).train(batches, 2)
