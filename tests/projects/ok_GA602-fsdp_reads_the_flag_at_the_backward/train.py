"""FSDP reads the flag of no_sync in its post-backward hook: around the backward alone it works."""
import contextlib

import torch
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP


def fit(net, loader, losses, args):
    model = FSDP(net, device_id=0)
    opt = torch.optim.AdamW(model.parameters(), lr=1e-4)
    for x, y in loader:
        opt.zero_grad()
        for k in range((args.bs - 1) // args.micro + 1):
            end = min((k + 1) * args.micro, args.bs)
            last = end == args.bs
            loss = losses(model(x[k * args.micro : end]), y[k * args.micro : end]).sum() / args.bs
            with model.no_sync() if not last else contextlib.nullcontext():
                loss.backward()
        opt.step()
