"""The model is wrapped, and an epoch of another file called, in a method that nobody here calls."""

import torch
from engine import train_one_epoch


class Model:
    def __init__(self, model):
        self.model = model

    def train(self, loader, criterion, args):
        model = self.model
        if args.distributed:
            model = torch.nn.parallel.DistributedDataParallel(model)
        optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
        for _ in range(args.start_epoch, args.epochs):
            train_one_epoch(model, criterion, loader, optimizer, args)
