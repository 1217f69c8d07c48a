"""A flag of 0 and 1 gates the step at every N-th batch; a counter that begins again at 0 is no flag."""

from torch.nn.functional import mse_loss


def fit(network, optimizer, stream, opt):
    since = 0
    for number in range(opt.updates * opt.window):
        x, y = next(stream)
        (mse_loss(network(x), y) / opt.window).backward()
        due = 0
        since += 1
        if since == opt.window:
            since = 0
            due = 1
        if due:
            optimizer.step()
            optimizer.zero_grad()
