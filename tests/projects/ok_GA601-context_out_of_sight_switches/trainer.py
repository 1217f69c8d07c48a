"""What switches synchronisation comes from elsewhere, or is a method of the wrapper that is looked up with care."""

from contextlib import AbstractContextManager, nullcontext

import torch
from helpers import hold_sync
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


def held(module, enabled):
    if not enabled:
        return nullcontext()
    method = getattr(module, "no_sync", None)
    if callable(method):
        context = method()
        if isinstance(context, AbstractContextManager):
            return context
    return nullcontext()


def with_a_helper(net, batches, accum):
    model = DDP(net)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for i, x in enumerate(batches):
        with hold_sync(model, (i + 1) % accum != 0):
            loss = nn.functional.mse_loss(model(x), x.sum(dim=1, keepdim=True)) / accum
            loss.backward()
        if (i + 1) % accum == 0 or i + 1 == 8:
            optimizer.step()
            optimizer.zero_grad()


def looked_up(net, batches, accum):
    model = DDP(net)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for i, x in enumerate(batches):
        with held(model, (i + 1) % accum != 0):
            loss = nn.functional.mse_loss(model(x), x.sum(dim=1, keepdim=True)) / accum
            loss.backward()
        if (i + 1) % accum == 0 or i + 1 == 8:
            optimizer.step()
            optimizer.zero_grad()
