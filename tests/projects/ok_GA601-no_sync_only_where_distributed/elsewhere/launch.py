from types import SimpleNamespace

import torch
import torch.distributed as dist
from torch import nn
from train import train

dist.init_process_group("gloo")
torch.manual_seed(0)
inputs = [torch.randn(8, 6) for _ in range(8)]
config = SimpleNamespace(accumulation=4, distributed=True, local_rank=0, max_norm=1.0)
train(nn.Linear(6, 2), [(x, x[:, :2].exp()) for x in inputs], config)
dist.destroy_process_group()
