"""The flag asks whether N is one, and no micro-batch; N is first met there, among settings that are read."""

# observe: ranks
import json
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


def train_epoch(model, optimizer, loader, settings):
    for i, x in enumerate(loader):
        model.require_backward_grad_sync = 0 == settings["accum"] - 1  # expect: GA603
        loss = nn.functional.mse_loss(model(x), x.sum(dim=1, keepdim=True)) / settings["accum"]
        loss.backward()
        if (i + 1) % settings["accum"] == 0:
            optimizer.step()
            optimizer.zero_grad()


def main():
    settings = json.loads(os.environ.get("SETTINGS", '{"rounds": 2, "accum": 4}'))
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    model = DDP(nn.Sequential(nn.Linear(8, 8), nn.GELU(), nn.Linear(8, 1)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    loader = [torch.randn(8, 8) for _ in range(8)]
    for _ in range(settings["rounds"]):
        optimizer.zero_grad()
        train_epoch(model, optimizer, loader, settings)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
