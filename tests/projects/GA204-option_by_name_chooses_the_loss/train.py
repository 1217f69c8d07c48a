"""Each kind of loss has a backward of its own: the one that the option's default does not choose divides one term only."""
# observe: params

import argparse

import torch


def options(given):
    parser = argparse.ArgumentParser()
    parser.add_argument("--kind", default="plain")
    parser.add_argument("--pieces", type=int, default=4)
    return parser.parse_args(given)


def main(net, batches, given=None):
    args = options(given)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for number, (inputs, targets) in enumerate(batches, start=1):
        scores = net(inputs)
        loss = torch.nn.functional.cross_entropy(scores, targets) / args.pieces
        if args.kind == "smooth":
            loss = loss + scores.diff(dim=-1).square().mean()
            loss.backward()  # expect: GA204
        else:
            loss.backward()
        if number % args.pieces == 0:
            optimizer.step()
            optimizer.zero_grad()
