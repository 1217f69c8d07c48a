"""A term is weighed by an option whose default is 1: the other term shows that the loss has no 1/N."""

# observe: params
import argparse

import torch
from torch import nn


def main(network, optimizer, batches):
    parser = argparse.ArgumentParser()
    parser.add_argument("--gather", type=int, default=4)
    parser.add_argument("--mix", type=float, default=1)
    options = parser.parse_args([])
    for number, x in enumerate(batches):
        one, two = network(x).chunk(2, dim=1)
        loss = one.pow(2).mean() + options.mix * two.pow(2).mean()
        loss.backward()  # expect: GA201
        if (number + 1) % options.gather == 0:
            optimizer.step()
            optimizer.zero_grad()


if __name__ == "__main__":
    net = nn.Linear(6, 2)
    main(net, torch.optim.SGD(net.parameters(), lr=0.05), [torch.randn(8, 6) for _ in range(8)])
