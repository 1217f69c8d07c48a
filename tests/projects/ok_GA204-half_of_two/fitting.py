"""N is two: a half of the second term is its share of the window."""

from torch.nn.functional import l1_loss, mse_loss


def fit(network, optimizer, stream, options):
    for number in range(1, options.updates * 2 + 1):
        x, y = next(stream)
        guess = network(x)
        loss = mse_loss(guess, y) / 2 + 0.5 * l1_loss(guess, y)
        loss.backward()
        if number % 2 == 0:
            optimizer.step()
            optimizer.zero_grad()
