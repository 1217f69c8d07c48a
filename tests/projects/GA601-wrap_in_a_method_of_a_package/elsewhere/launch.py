import torch
import torch.distributed as dist
from pkg.main import Model

dist.init_process_group("gloo")
torch.manual_seed(0)
Model().train({})
dist.destroy_process_group()
