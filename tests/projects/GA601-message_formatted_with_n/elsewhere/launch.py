from types import SimpleNamespace

import torch
import torch.distributed as dist
from train import train

dist.init_process_group("gloo")
torch.manual_seed(0)
train(SimpleNamespace(accum_iter=4, epochs=2, lr=1e-2))
dist.destroy_process_group()
