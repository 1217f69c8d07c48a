"""The number of steps goes on from a checkpoint, and the default of the total is known: the loop is not left at once."""

# observe: params
import argparse
from types import SimpleNamespace

import torch
from torch import nn


def main(network, optimizer, batches, restored):
    parser = argparse.ArgumentParser()
    parser.add_argument("--total", type=int, default=100_000)
    options = parser.parse_args([])
    steps = restored.steps
    for number, x in enumerate(batches):
        network(x).pow(2).mean().backward()  # expect: GA201
        if (number + 1) % 4 == 0:
            steps += 1
            optimizer.step()
            optimizer.zero_grad()
        if steps >= options.total:
            break


def start(batches):
    net = nn.Linear(6, 2)
    main(net, torch.optim.SGD(net.parameters(), lr=0.05), batches, SimpleNamespace(steps=12))


if __name__ == "__main__":
    start([torch.randn(8, 6) for _ in range(8)])
