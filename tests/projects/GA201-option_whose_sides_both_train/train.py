"""An option that is off by default has a backward of its own, as its other side has: only the one that is off lacks 1/N."""
# observe: params

import argparse

import torch


def options(given):
    parser = argparse.ArgumentParser()
    parser.add_argument("--smooth", action="store_true")
    parser.add_argument("--pieces", type=int, default=4)
    return parser.parse_args(given)


def main(net, batches, given=None):
    args = options(given)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for number, (inputs, targets) in enumerate(batches, start=1):
        scores = net(inputs)
        if args.smooth:
            smoothed = torch.nn.functional.cross_entropy(scores, targets, label_smoothing=0.1)
            loss = (smoothed + torch.nn.functional.cross_entropy(scores, targets)) / 2
            loss.backward()  # expect: GA201
        else:
            loss = torch.nn.functional.cross_entropy(scores, targets)
            (loss / args.pieces).backward()
        if number % args.pieces == 0:
            optimizer.step()
            optimizer.zero_grad()
