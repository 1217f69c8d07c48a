"""Whether to step is a flag of 0 and 1, raised at every N-th batch; the losses of the window are summed."""
# observe: params

from torch.nn.functional import mse_loss


def fit(network, optimizer, batches, opt):
    for number, (x, y) in enumerate(batches, 1):
        due = 0
        if number % opt.window == 0 or number == len(batches):
            due = 1
        mse_loss(network(x), y).backward()  # expect: GA201
        if due == 1:
            optimizer.step()
            optimizer.zero_grad()
