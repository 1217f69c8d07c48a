import os
from types import SimpleNamespace

import torch
import torch.distributed as dist
from spread import train
from torch import nn

dist.init_process_group("gloo")
os.environ["WORLD_SIZE"] = "2"  # what a launcher of two says; the observer starts one
torch.manual_seed(0)
loader = [(torch.randn(8, 6), torch.randn(8, 2)) for _ in range(8)]
train(nn.Linear(6, 2), loader, SimpleNamespace(epochs=2, n=4))
dist.destroy_process_group()
