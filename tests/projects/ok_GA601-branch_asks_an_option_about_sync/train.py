"""Whether gradients are summed on each rank before the all-reduce is an option, asked beside the rank and N."""

import argparse

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def main(network, batches):
    parser = argparse.ArgumentParser()
    parser.add_argument("--gather", type=int, default=4)
    parser.add_argument("--rank", type=int, default=-1)
    parser.add_argument("--sync_late", action="store_true")
    args = parser.parse_args()
    if args.rank != -1:
        network = DistributedDataParallel(network)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.05, momentum=0.9)
    for number, (x, y) in enumerate(batches):
        full = (number + 1) % args.gather == 0 or number == len(batches) - 1
        if args.rank != -1 and args.sync_late and not full:
            with network.no_sync():
                (nn.functional.mse_loss(network(x), y, reduction="sum") / args.gather).backward()
        else:
            (nn.functional.mse_loss(network(x), y, reduction="sum") / args.gather).backward()
        if full:
            optimizer.step()
            optimizer.zero_grad()


if __name__ == "__main__":
    main(nn.Linear(6, 2), [(torch.randn(8, 6), torch.randn(8, 2)) for _ in range(8)])
