"""Two ways to step, chosen by an option whose default is 0, wait for the same remainder; no loss is divided by N."""

# observe: params
import argparse

import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--gather", type=int, default=4)
parser.add_argument("--shake", type=int, default=0)
options = parser.parse_args([])
network = nn.Linear(6, 2)
optimizer = torch.optim.SGD(network.parameters(), lr=0.05)
seen = 0
for _epoch in range(2):
    for x in [torch.randn(8, 6) for _ in range(8)]:
        loss = network(x).pow(2).mean()
        loss.backward()  # expect: GA201
        seen += 1
        if not options.shake and seen % options.gather == 0:
            optimizer.step()
            optimizer.zero_grad()
        elif options.shake and seen % options.gather == 0:
            optimizer.step()
            optimizer.zero_grad()
            network.weight.data.add_(0.1 * torch.randn_like(network.weight))
