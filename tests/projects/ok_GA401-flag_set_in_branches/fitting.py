"""Whether to step is a flag that a branch raises at every fourth batch, and that is lowered again before each."""

from torch.nn.functional import mse_loss


def fit(network, optimizer, stream, opt):
    for number in range(opt.updates * opt.window):
        x, y = next(stream)
        (mse_loss(network(x), y) / opt.window).backward()
        due = False
        if number % opt.window == opt.window - 1:
            due = True
        if due:
            optimizer.step()
            optimizer.zero_grad()
