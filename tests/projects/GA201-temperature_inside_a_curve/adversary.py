"""A temperature inside softplus is no factor of the loss that comes out."""
# observe: params

from torch.nn.functional import softplus


def fit(network, stream, optimizer, updates):
    for number in range(1, 4 * updates + 1):
        loss = softplus(-network(next(stream)) / 3).mean()
        loss.backward()  # expect: GA201
        if number % 4 == 0:
            optimizer.step()
            optimizer.zero_grad()


def fit_well(network, stream, optimizer, updates):
    for number in range(1, 4 * updates + 1):
        loss = (network(next(stream)) / 3).exp().mean() / 4
        loss.backward()
        if number % 4 == 0:
            optimizer.step()
            optimizer.zero_grad()
