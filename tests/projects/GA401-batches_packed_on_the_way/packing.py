"""A generator expression puts the loader's batches into objects of the program's own class."""
# observe: params

import torch
from torch.nn.functional import mse_loss


class Pack:
    def __init__(self, x, y):
        self.x = x
        self.y = y


def epoch(packs, model, optimizer, every):
    for i, pack in enumerate(packs):
        loss = mse_loss(model(pack.x), pack.y) / every
        loss.backward()
        if i % every == 0:  # expect: GA401 "the first window of each epoch has 1 micro-batch"
            optimizer.step()
            optimizer.zero_grad()


def train(model, loader, options):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    for _ in range(options.epochs):
        optimizer.zero_grad()
        epoch((Pack(x, y) for x, y in loader), model, optimizer, options.every)
