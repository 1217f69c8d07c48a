"""Saving goes by the counter of updates, each time once: under the guard, behind a mark, or by the count of batches."""

import torch
from torch import nn


def save(model, updates):
    print("saved", updates, sum(p.sum().item() for p in model.parameters()))


def train(model, batches, opt, args):
    updates, saved = 0, 0
    opt.zero_grad()
    for i in range(2 * args.accum):
        x, y = batches[i]
        nn.functional.mse_loss(model(x), y).div(args.accum).backward()
        ends = (i + 1) % args.accum == 0
        if ends:
            opt.step()
            opt.zero_grad()
            updates += 1
            if updates % args.save_every == 0:
                save(model, updates)
        if ends and updates % args.save_every == 0:
            save(model, updates)
        if (i + 1) % args.accum == 0 and updates % args.save_every == 0:
            save(model, updates)
        if updates % args.save_every == 0 and updates != saved:
            save(model, updates)
            saved = updates
        if i % args.save_every == 0:
            save(model, updates)


def epochs(model, batches, opt, args):
    for epoch in range(args.epochs):
        opt.zero_grad()
        for i in range(2 * args.accum):
            x, y = batches[i]
            nn.functional.mse_loss(model(x), y).div(args.accum).backward()
            if (i + 1) % args.accum == 0:
                opt.step()
                opt.zero_grad()
            if epoch % args.save_every == 0 and i == 2 * args.accum - 1:
                save(model, epoch)
