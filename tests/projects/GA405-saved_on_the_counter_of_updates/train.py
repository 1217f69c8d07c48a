"""Saving and evaluating go by the counter of updates, and stand outside the guard that moves it."""
# observe: none

import torch
from torch import nn


def save(model, updates):
    print("saved", updates, sum(p.sum().item() for p in model.parameters()))


def evaluate(model):
    with torch.no_grad():
        print("evaluated", model(torch.zeros(1, 3)).item())


def train(model, batches, opt, args):
    updates = 0
    opt.zero_grad()
    for i, (x, y) in enumerate(batches):
        nn.functional.mse_loss(model(x), y).div(args.accum).backward()
        if updates % args.eval_every == 0 or updates == args.last:  # expect: GA405
            evaluate(model)
        if (i + 1) % args.accum == 0 or i + 1 == len(batches):  # expect: GA205
            opt.step()
            opt.zero_grad()
            updates += 1
        if args.rank in (-1, 0) and updates > 0 and updates % args.save_every == 0:  # expect: GA405
            save(model, updates)
