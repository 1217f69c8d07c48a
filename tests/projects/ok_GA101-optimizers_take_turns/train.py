"""Two optimizers take turns at one loss: in each pass both are cleared and one steps, with that pass's whole gradient."""

import torch
from torch import nn


def in_turns(batches, users, things):
    by_users = torch.optim.SGD(users.parameters(), lr=0.05)
    by_things = torch.optim.SGD(things.parameters(), lr=0.05)
    for _epoch in range(2):
        for number, (x, y) in enumerate(batches):
            by_users.zero_grad()
            by_things.zero_grad()
            loss = (things(users(x)) - y).pow(2).mean()
            loss.backward()
            if number % 2 == 0:
                by_users.step()
            else:
                by_things.step()


if __name__ == "__main__":
    in_turns([(torch.randn(8, 6), torch.randn(8, 1)) for _ in range(9)], nn.Linear(6, 3), nn.Linear(3, 1))
