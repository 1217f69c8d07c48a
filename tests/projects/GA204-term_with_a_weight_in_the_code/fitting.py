"""The second term weighs a half by a number in the code, and is not divided by N as the first term is."""
# observe: params

from torch.nn.functional import l1_loss, mse_loss


def fit(network, optimizer, stream, options):
    for number in range(1, options.updates * options.window + 1):
        x, y = next(stream)
        guess = network(x)
        loss = mse_loss(guess, y) / options.window + 0.5 * l1_loss(guess, y)
        loss.backward()  # expect: GA204 "1 of 2"
        if number % options.window == 0:
            optimizer.step()
            optimizer.zero_grad()
