"""A number of micro-batches of 0 says that nothing accumulates; with a number the first window has one micro-batch."""
# observe: params

import argparse

import torch


def options(given):
    parser = argparse.ArgumentParser()
    parser.add_argument("--grad-accumulation", type=int, default=0)
    return parser.parse_args(given)


def main(net, batches, given=None):
    args = options(given)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    count = 0
    for inputs, targets in batches:
        loss = torch.nn.functional.mse_loss(net(inputs), targets)
        if args.grad_accumulation:
            loss = loss / args.grad_accumulation
        loss.backward()
        if not args.grad_accumulation or count % args.grad_accumulation == 0:  # expect: GA401
            optimizer.step()
            optimizer.zero_grad()
        count += 1
