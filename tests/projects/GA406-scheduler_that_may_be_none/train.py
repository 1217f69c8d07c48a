"""The schedule is made in sight, and the function that steps it asks whether it is None."""

# observe: rate
import torch
from torch import nn
from torch.optim.lr_scheduler import CosineAnnealingLR
from torch.utils.data import DataLoader


def one_pass(network, optimizer, schedule, loader, gather):
    for number, x in enumerate(loader):
        (network(x).pow(2).mean() / gather).backward()
        if (number + 1) % gather == 0:
            optimizer.step()
            optimizer.zero_grad()
            if schedule is not None:
                schedule.step()


def run(network, loader, epochs, gather):
    optimizer = torch.optim.SGD(network.parameters(), lr=0.05)
    schedule = CosineAnnealingLR(optimizer, T_max=len(loader) * epochs)  # expect: GA406
    for _epoch in range(epochs):
        one_pass(network, optimizer, schedule, loader, gather)


if __name__ == "__main__":
    run(nn.Linear(6, 2), DataLoader([torch.randn(6) for _ in range(64)], batch_size=8), 2, 4)
