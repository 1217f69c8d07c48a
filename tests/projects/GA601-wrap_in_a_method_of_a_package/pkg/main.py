"""The wrapping and the epochs stand in a method of a class that nobody here calls."""

import torch
from pkg.engine import train_one_epoch
from pkg_models import build, criterion_of, loader_of, options


class Model:
    def __init__(self, **kwargs):
        self.options = options(**kwargs)
        self.model = build(self.options)

    def train(self, callbacks, **kwargs):
        args = options(**kwargs)
        model = build(args)
        if args.distributed:
            model = torch.nn.parallel.DistributedDataParallel(model)
        optimizer = torch.optim.AdamW(model.parameters())
        criterion, loader = criterion_of(args), loader_of(args)
        for _ in range(args.epochs):
            model.train()
            train_one_epoch(model, criterion, loader, optimizer, args)
