"""All but the last micro-batch hold back where there are ranks; with `local_rank` at -1 nothing would be wrapped."""

from contextlib import nullcontext

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


def train(network, batches, config):
    accum = config.accumulation
    if config.distributed:
        network = DDP(network)
    optimizer = torch.optim.AdamW(network.parameters())
    for step, (x, y) in enumerate(batches):
        context = network.no_sync if config.local_rank != -1 and (step + 1) % accum != 0 else nullcontext
        with context():
            loss = nn.functional.mse_loss(network(x), y) / accum
            loss.backward()
        if (step + 1) % accum == 0:
            torch.nn.utils.clip_grad_norm_(network.parameters(), config.max_norm)
            optimizer.step()
            optimizer.zero_grad()
