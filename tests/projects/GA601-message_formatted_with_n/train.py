"""N is printed through `%` before the training: a text is formatted there, nothing is counted."""
# observe: allreduces

import torch
from data import build, loader
from misc import NativeScaler
from torch import nn


def train_one_epoch(model, data_loader, optimizer, loss_scaler, args):
    for i, (x, y) in enumerate(data_loader):
        loss = nn.functional.cross_entropy(model(x), y)
        loss /= args.accum_iter
        done = (i + 1) % args.accum_iter == 0
        loss_scaler(loss, optimizer, parameters=model.parameters(), update_grad=done)  # expect: GA601, GA403
        if done:
            optimizer.zero_grad()


def train(args):
    print("accumulate grad iterations: %d" % args.accum_iter)
    model = torch.nn.parallel.DistributedDataParallel(build(args))
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
    loss_scaler = NativeScaler()
    for _ in range(args.epochs):
        optimizer.zero_grad()
        train_one_epoch(model, loader, optimizer, loss_scaler, args)
