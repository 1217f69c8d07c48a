"""Nothing moves the counter, so that no window ever ends."""
# observe: params

from torch.nn.functional import mse_loss


def fit(network, optimizer, batches, options):
    for _ in range(options.epochs):
        seen = 0
        for x, y in batches:
            (mse_loss(network(x), y) / options.window).backward()
            if (seen + 1) % options.window == 0:  # expect: GA401 "never steps"
                optimizer.step()
                optimizer.zero_grad()
