"""A text is cut along its length, and each cut into parts."""
# observe: params

from torch.nn.functional import mse_loss


def train(options, network, text, cut, optimizer):
    at, seen = 0, 0
    while at < text.size(0) - 1 - 1:
        pieces, goals = cut(text, at, options.longest)
        optimizer.zero_grad()
        for part in range(options.parts):
            loss = mse_loss(network(pieces[part]), goals[part])
            loss.backward()  # expect: GA201
        optimizer.step()
        at += options.longest
        seen += 1
    return seen


def measure(options, network, text, cut):
    total = 0
    for at in range(0, text.size(0) - 1, options.longest):
        pieces, goals = cut(text, at, options.longest)
        total += mse_loss(network(pieces), goals).item()
    return total


def run(options, network, corpus, cut, optimizer):
    for _ in range(options.epochs):
        train(options, network, corpus.train, cut, optimizer)
        measure(options, network, corpus.valid, cut)
