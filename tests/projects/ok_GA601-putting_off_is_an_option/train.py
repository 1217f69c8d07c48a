"""Whether the gradients wait for the window's end is an option: they take memory until then."""

import argparse
from contextlib import nullcontext

import torch
from torch import nn
from torch.distributed.fsdp import FullyShardedDataParallel


def main(network, batches):
    parser = argparse.ArgumentParser()
    parser.add_argument("--gather", type=int, default=4)
    parser.add_argument("--local_sums", action="store_true", help="less traffic, and more memory")
    args = parser.parse_args()
    network = FullyShardedDataParallel(network)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.05, momentum=0.9)
    for number, (x, y) in enumerate(batches):
        full = (number + 1) % args.gather == 0 or number == len(batches) - 1
        with network.no_sync() if args.local_sums and not full else nullcontext():
            loss = nn.functional.mse_loss(network(x), y, reduction="sum") / args.gather
            loss.backward()
        if full:
            optimizer.step()
            optimizer.zero_grad()


if __name__ == "__main__":
    main(nn.Linear(6, 2), [(torch.randn(8, 6), torch.randn(8, 2)) for _ in range(8)])
