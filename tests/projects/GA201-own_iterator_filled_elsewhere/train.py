"""A loader of the project's own, whose starts are picked by the data: it has some, whatever galint can see of them."""
# observe: params

import numpy
import torch
from torch.nn.functional import cross_entropy


class Windows:
    def __init__(self, tokens, length):
        self.tokens = tokens
        self.length = length
        self.starts = []
        found = torch.from_numpy(numpy.where(tokens == 0)[0])
        for k in range(len(found) - 1):
            if found[k].item() + length < len(tokens):
                self.starts.append(found[k].item())

    def __iter__(self):
        return self

    def __next__(self):
        if not self.starts:
            raise StopIteration("no window is long enough")
        picked = torch.randint(0, len(self.starts), (4,))
        rows = [self.tokens[self.starts[k] : self.starts[k] + self.length + 1] for k in picked.tolist()]
        return torch.tensor(numpy.stack(rows))


def train(network, tokens, options):
    optimizer = torch.optim.SGD(network.parameters(), lr=0.05, momentum=0.9)
    windows = iter(Windows(tokens, options.length))
    for _ in range(options.updates):
        for _ in range(options.gather):
            rows = next(windows)
            loss = cross_entropy(network(rows[:, :-1]).flatten(0, 1), rows[:, 1:].flatten())
            loss.backward()  # expect: GA201 "`options.gather` = 4"
        optimizer.step()
        optimizer.zero_grad()
