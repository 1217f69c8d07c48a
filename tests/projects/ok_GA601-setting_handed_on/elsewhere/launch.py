import torch
import torch.distributed as dist
from train import main

dist.init_process_group("gloo")
torch.manual_seed(0)
main(use_ddp=True, accum_grad=4, epochs=2)
dist.destroy_process_group()
