from types import SimpleNamespace

import torch
import torch.distributed as dist
from main import Model
from torch import nn

dist.init_process_group("gloo")
torch.manual_seed(0)
inputs = [torch.randn(8, 6) for _ in range(3)]
args = SimpleNamespace(distributed=True, lr=0.05, start_epoch=0, epochs=2, grad_accum_steps=4, sub_batch=2)
Model(nn.Linear(6, 2)).train([(x, x[:, :2].sin()) for x in inputs], nn.functional.mse_loss, args)
dist.destroy_process_group()
