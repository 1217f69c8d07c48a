"""The model is sharded by hand before Accelerate prepares it: `accumulate` opens the wrapper's own `no_sync`."""

import torch
from accelerate import Accelerator
from torch.distributed.fsdp import FullyShardedDataParallel
from torch.nn.parallel import DistributedDataParallel


def spread(net, sharded):
    if sharded:
        return FullyShardedDataParallel(net)
    return DistributedDataParallel(net)


def train(net, batches, settings):
    accelerator = Accelerator(gradient_accumulation_steps=settings.accum)
    if settings.spread:
        net = spread(net, settings.sharded)
    net = accelerator.prepare(net)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-4)
    optimizer, batches = accelerator.prepare(optimizer, batches)
    for batch in batches:
        with accelerator.accumulate(net):
            accelerator.backward(net(batch).pow(2).mean())
            optimizer.step()
            optimizer.zero_grad()
