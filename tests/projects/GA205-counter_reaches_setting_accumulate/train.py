"""N is an attribute called `accumulate`, and a counter is compared with it."""
# observe: params

from torch import nn


def train(model, loader, config, optimizer):
    held = 0
    for i, (x, y) in enumerate(loader):
        loss = nn.functional.cross_entropy(model(x), y)
        (loss / config.accumulate).backward()
        held += 1
        if held == config.accumulate or i + 1 == len(loader):  # expect: GA205
            optimizer.step()
            optimizer.zero_grad()
            held = 0
