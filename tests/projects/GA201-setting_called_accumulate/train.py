"""The number of micro-batches is a setting called `accumulate`; it is no method of a framework."""
# observe: params

import torch


def train(args, model, stream, criterion):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for i in range(args.updates * args.accumulate):
        x, y = next(stream)
        loss = criterion(model(x), y)
        loss.backward()  # expect: GA201
        if (i + 1) % args.accumulate == 0:
            optimizer.step()
            optimizer.zero_grad()
