"""The micro-batches of a window stand under one condition, the last of them and the step under its opposite."""
# observe: params

from torch.nn.functional import cross_entropy

GATHER = 20


def fit(network, optimizer, batches):
    optimizer.zero_grad()
    for number, (x, y) in enumerate(batches):
        number += 1
        if number % GATHER != 0:
            loss = cross_entropy(network(x), y)
            loss.backward()  # expect: GA201 "20 times"
        if number % GATHER == 0:  # expect: GA403
            loss = cross_entropy(network(x), y)
            loss.backward()  # expect: GA201 "20 times"
            optimizer.step()
            optimizer.zero_grad()
