"""A trial run leaves the loop after its first window; any other run goes through the epoch, and drops its last one."""
# observe: params

from torch.nn.functional import mse_loss


def epoch(network, optimizer, batches, n, options):
    for number, (x, y) in enumerate(batches):
        if number % n == 0:
            optimizer.zero_grad()
            if number > 0 and options.trial:
                break
        loss = mse_loss(network(x), y)
        loss = loss / n
        loss.backward()
        if (number + 1) % n == 0:  # expect: GA403
            optimizer.step()
