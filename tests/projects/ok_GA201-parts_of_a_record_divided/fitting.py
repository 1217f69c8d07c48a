"""The losses lie in a record that a batch fills; each of them is divided where it lies, and the total is taken after that."""

from collections import OrderedDict


class Record(OrderedDict):
    def __init__(self, batch, answer):
        super().__init__()
        for part in (batch, answer):
            for key, item in part.items():
                self[key] = item

    def __getattr__(self, key):
        try:
            return self[key]
        except KeyError:
            raise AttributeError(key) from None


def total(record, share):
    losses = record.losses
    for key, value in losses.items():
        value = value.mean() / share
        record.losses[key] = value
    return sum(value.mean() for value in losses.values())


def fit(options, network, stream, optimizer):
    for number in range(1, options.updates * options.window + 1):
        batch = next(stream)
        total(Record(batch, network(batch)), options.window).backward()
        if number % options.window == 0:
            optimizer.step()
            optimizer.zero_grad()
