"""The countdown begins at N, and again at one less: all windows but the first are one batch short."""
# observe: params

from torch.nn.functional import mse_loss


def fit(network, optimizer, batches, options):
    left = options.window
    for _ in range(options.epochs):
        for x, y in batches:
            (mse_loss(network(x), y) / options.window).backward()
            left -= 1
            if left == 0:  # expect: GA401 "4, 3"
                optimizer.step()
                optimizer.zero_grad()
                left = options.window - 1
