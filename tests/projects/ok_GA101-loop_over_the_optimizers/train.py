"""Each optimizer of a list clears, runs its own loss backward and steps, in one loop for all."""

import torch


def train(model, batches):
    optimizers = [
        torch.optim.SGD(model.body.parameters(), lr=0.1, momentum=0.9),
        torch.optim.SGD(model.judge.parameters(), lr=0.1, momentum=0.9),
    ]
    for batch in batches:
        for which, optimizer in enumerate(optimizers):
            loss = model.loss(batch, which)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


def train_given(model, batches, first):
    optimizers = [first, torch.optim.Adam(model.judge.parameters())]
    for batch in batches:
        for which, optimizer in enumerate(optimizers):
            optimizer.zero_grad()
            loss = model.loss(batch, which)
            loss.backward()
            optimizer.step()
