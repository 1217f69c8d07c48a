from types import SimpleNamespace

import torch
from train import train

torch.manual_seed(0)
batches = [torch.randn(5, 6) for _ in range(12)]
train(SimpleNamespace(optimizer="sgd", times=4), SimpleNamespace(), torch.nn.Linear(6, 4), batches)
