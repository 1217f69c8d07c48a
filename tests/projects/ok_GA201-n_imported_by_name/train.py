"""N comes by `from … import` from a module that is not seen; the loss is divided by it, and the flag compares with it."""

import torch
from data import distributed, get_batch, steps
from settings import GRAD_ACCUM
from torch import nn
from torch.nn.parallel import DistributedDataParallel

model = nn.Linear(6, 3)
if distributed:
    model = DistributedDataParallel(model)
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(steps):
    optimizer.zero_grad()
    for micro in range(GRAD_ACCUM):
        if distributed:
            model.require_backward_grad_sync = micro == GRAD_ACCUM - 1
        x, y = get_batch()
        loss = nn.functional.cross_entropy(model(x), y) / GRAD_ACCUM
        loss.backward()
    optimizer.step()
