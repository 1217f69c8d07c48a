"""Each loss is multiplied with a weight from the settings, which is not the missing 1/N."""
# observe: params

import torch
from torch import nn


def fit(model, loader, args):
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr)
    for index, (x, y) in enumerate(loader):
        loss = nn.functional.cross_entropy(model(x), y)
        (loss * args.caption_weight).backward()  # expect: GA201
        if (index + 1) % args.accumulate == 0 or index + 1 == len(loader):
            optimizer.step()
            optimizer.zero_grad()
