"""The number of micro-batches is called `accumulate` and lies in a section of the configuration."""
# observe: params

import torch


def train(config, model, stream, compute_loss):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    optimizer.zero_grad()
    for i in range(config.train.updates * config.train.accumulate):
        images, targets = next(stream)
        loss = compute_loss(model(images), targets)
        loss.backward()  # expect: GA201
        if (i + 1) % config.train.accumulate == 0:
            optimizer.step()
            optimizer.zero_grad()
