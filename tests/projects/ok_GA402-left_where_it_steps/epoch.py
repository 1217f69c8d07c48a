"""An epoch is so many batches of a longer stream: the last of them steps, and the loop is left there."""

import argparse

from torch.nn.functional import mse_loss


def options():
    parser = argparse.ArgumentParser()
    parser.add_argument("--gather", default=4, type=int)
    parser.add_argument("--length", default=2000, type=int)
    return parser


def epoch(network, optimizer, batches, args):
    for number, (x, y) in enumerate(batches):
        loss = mse_loss(network(x), y) / args.gather
        loss.backward()
        if (number + 1) % args.gather == 0 or number == args.length - 1:
            optimizer.step()
            optimizer.zero_grad()
        if number == args.length - 1:
            break


def main(network, optimizer, loader, argv=None):
    args = options().parse_args(argv)
    for _ in range(3):
        epoch(network, optimizer, loader, args)
