import tempfile

import torch
import torch.distributed as dist
from train import train

torch.manual_seed(0)
dist.init_process_group("gloo", init_method=f"file://{tempfile.mktemp()}", rank=0, world_size=1)
train(torch.nn.Linear(3, 1), [(torch.randn(2, 3), torch.randn(2, 1)) for _ in range(8)], 4, 0, 1)
dist.destroy_process_group()
