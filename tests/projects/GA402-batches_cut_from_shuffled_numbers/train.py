"""The batches are cut from the shuffled numbers of the samples, by a batch size that the code names."""
# observe: params

import random

import torch
from torch.nn.functional import mse_loss

BATCH = 16
EVERY = 4


def epoch(model, optimizer, xs, ys):
    order = list(range(len(ys)))
    random.shuffle(order)
    seen = 0
    for begin in range(0, len(order), BATCH):
        part = order[begin : begin + BATCH]
        loss = mse_loss(model(xs[part]), ys[part]) / EVERY
        loss.backward()
        seen += 1
        if seen % EVERY == 0:  # expect: GA402
            optimizer.step()
            optimizer.zero_grad()


def main():
    torch.manual_seed(0)
    random.seed(0)
    model = torch.nn.Linear(6, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    xs, ys = torch.randn(160, 6), torch.randn(160, 2)
    for _ in range(2):
        epoch(model, optimizer, xs, ys)


if __name__ == "__main__":
    main()
