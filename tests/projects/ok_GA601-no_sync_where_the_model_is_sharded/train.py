"""`no_sync` is used only where the model is FSDP; nothing says that it is DDP otherwise."""

from contextlib import nullcontext

from torch import nn
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP


def backward(loss, scaler):
    if scaler is not None:
        scaler.scale(loss).backward()
    else:
        loss.backward()


def train_one_epoch(model, data, optimizer, scaler, args):
    for x, y in data:
        optimizer.zero_grad()
        for i in range(args.accum_freq):
            context = nullcontext
            if isinstance(model, FSDP) and i != args.accum_freq - 1:
                context = model.no_sync
            with context():
                loss = nn.functional.cross_entropy(model(x[i]), y[i]) / args.accum_freq
                backward(loss, scaler)
        if scaler is not None:
            scaler.step(optimizer)
            scaler.update()
        else:
            optimizer.step()
