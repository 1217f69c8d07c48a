import torch
import torch.distributed as dist

steps = 3
dist.init_process_group("gloo")
distributed = dist.is_initialized()


def get_batch():
    x = torch.randn(8, 6)
    return x, x[:, :3].argmax(dim=1)
