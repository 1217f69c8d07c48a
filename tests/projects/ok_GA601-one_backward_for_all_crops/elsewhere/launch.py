import torch
import torch.distributed as dist
from torch import nn
from train import train

dist.init_process_group("gloo")
torch.manual_seed(0)
network = nn.Linear(6, 2)
batches = []
for _ in range(6):
    views = [torch.randn(8, 6) for _ in range(3)]
    targets = [view[:, :2].exp() for view in views]
    batches.append((views[0], targets[0], views[1:], targets[1:]))
train(network, torch.optim.AdamW(network.parameters()), batches)
dist.destroy_process_group()
