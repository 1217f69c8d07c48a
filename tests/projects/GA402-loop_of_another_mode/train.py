"""Two loops, chosen by a setting: the first one flushes its tail, the other one leaks it."""
# observe: params

from torch import nn


def with_flush(model, optimizer, batches, accumulation):
    for i, (x, y) in enumerate(batches):
        loss = nn.functional.cross_entropy(model(x), y, reduction="sum")
        loss.backward()
        if (i + 1) % accumulation == 0 or i + 1 == len(batches):
            optimizer.step()
            optimizer.zero_grad()


def without_flush(model, optimizer, batches, accumulation):
    for i, (x, y) in enumerate(batches):
        loss = nn.functional.cross_entropy(model(x), y) / accumulation
        loss.backward()
        if (i + 1) % accumulation == 0:  # expect: GA402 "is false"
            optimizer.step()
            optimizer.zero_grad()


def train(model, optimizer, batches, settings):
    for _ in range(settings.epochs):
        if settings.mode == "flush":
            with_flush(model, optimizer, batches, settings.accumulation)
        else:
            without_flush(model, optimizer, batches, settings.accumulation)
