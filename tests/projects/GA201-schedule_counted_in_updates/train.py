"""The schedule is as long as there are updates: a quotient with N below it, but no learning rate divided by N."""
# observe: params

import torch
from schedules import warmup_then_cosine
from torch import nn


def fit(model, loader, options):
    optimizer = torch.optim.SGD(model.parameters(), lr=options.lr)
    lr_schedule = warmup_then_cosine(optimizer, len(loader) * options.epochs // options.accumulate_every)
    for _ in range(options.epochs):
        optimizer.zero_grad()
        for index, (x, y) in enumerate(loader):
            nn.functional.cross_entropy(model(x), y).backward()  # expect: GA201
            if (index + 1) % options.accumulate_every == 0 or index + 1 == len(loader):
                optimizer.step()
                optimizer.zero_grad()
                lr_schedule.step()
