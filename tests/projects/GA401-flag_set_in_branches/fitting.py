"""Whether to step is a flag that branches set: at batch 0 no, at every fourth after it, so the first window has five."""
# observe: params

import argparse

from torch.nn.functional import mse_loss


def options():
    parser = argparse.ArgumentParser()
    parser.add_argument("--accumulate", type=int, default=1)
    return parser.parse_args()


def fit(network, optimizer, batches, opt):
    for number, (x, y) in enumerate(batches):
        mse_loss(network(x), y).backward()  # expect: GA201
        due = True
        if opt.accumulate > 1:
            if number == 0:
                due = False
            elif number % opt.accumulate == 0 or number == len(batches) - 1:
                due = True
            else:
                due = False
        if due:  # expect: GA401 "5, 3"
            optimizer.step()
            optimizer.zero_grad()


def main(network, optimizer, batches):
    opt = options()
    for _ in range(opt.epochs):
        fit(network, optimizer, batches, opt)
