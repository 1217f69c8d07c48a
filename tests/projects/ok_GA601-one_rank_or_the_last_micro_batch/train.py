"""One rank has no wrapper whose synchronisation could be put off; where there are more, it is."""

import os
from contextlib import nullcontext

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def fit(network, stream, gather, updates, ranks):
    if ranks > 1:
        network = DistributedDataParallel(network)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.05, momentum=0.9)
    for _ in range(updates):
        for part in range(gather):
            x, y = next(stream)
            last = part == gather - 1
            held = nullcontext() if (ranks == 1 or last) else network.no_sync()
            with held:
                loss = nn.functional.mse_loss(network(x), y) / gather
                loss.backward()
        optimizer.step()
        optimizer.zero_grad()


if __name__ == "__main__":
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    batches = [(torch.randn(8, 6), torch.randn(8, 2)) for _ in range(8)]
    fit(nn.Linear(6, 2), iter(batches), 4, 2, int(os.environ.get("WORLD_SIZE", 1)))
    dist.destroy_process_group()
