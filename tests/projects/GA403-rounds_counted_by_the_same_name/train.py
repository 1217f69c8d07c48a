"""The rounds are counted by a variable of the same name as the one that the step's condition asks, in two ways."""

# observe: params
import torch
from torch import nn


def rounds_inside(net, batches, rounds, accum):
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for i in range(rounds):
        optimizer.zero_grad()
        for i, batch in enumerate(batches):
            loss = nn.functional.mse_loss(net(batch), batch[:, :2] + 1) / accum
            loss.backward()
            if (i + 1) % accum == 0:  # expect: GA403
                optimizer.step()
                optimizer.zero_grad()


def one_round(net, batches, optimizer, number, accum):
    optimizer.zero_grad()
    for i, batch in enumerate(batches):
        loss = nn.functional.mse_loss(net(batch), batch[:, :2] + number) / accum
        loss.backward()
        if (i + 1) % accum == 0:  # expect: GA403
            optimizer.step()
            optimizer.zero_grad()


def rounds_outside(net, batches, settings):
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for i in range(settings.rounds):
        one_round(net, batches, optimizer, i, settings.accum)


if __name__ == "__main__":
    rounds_inside(nn.Linear(6, 2), [torch.randn(8, 6) for _ in range(10)], rounds=2, accum=4)
