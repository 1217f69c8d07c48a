"""The settings are a module that is imported by its whole name."""

import lab.args as args
import torch
from torch import nn


def fit(net, batches):
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for step, (x, y) in enumerate(batches):
        loss = nn.functional.cross_entropy(net(x), y)
        if args.accumulate > 1:
            loss = loss / args.accumulate
        loss.backward()
        if (step + 1) % args.accumulate == 0 or step + 1 == len(batches):
            optimizer.step()
            optimizer.zero_grad()


if __name__ == "__main__":
    fit(nn.Linear(4, 2), [(torch.randn(6, 4), torch.randint(0, 2, (6,))) for _ in range(12)])
