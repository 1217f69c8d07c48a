"""Validation leaves the network in `eval()`; the next epoch's training puts it back before a loss comes through it."""
# observe: params

import torch
from torch import nn
from torch.nn.functional import mse_loss


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(6, 8)
        self.norm = nn.BatchNorm1d(8)  # expect: GA501
        self.outer = nn.Linear(8, 2)

    def forward(self, x):
        return self.outer(self.norm(self.inner(x)).tanh())


def train_epoch(network, batches, optimizer, every):
    network.train()
    optimizer.zero_grad()
    for number, (x, y) in enumerate(batches, start=1):
        loss = mse_loss(network(x), y) / every
        loss.backward()
        if number % every == 0:
            optimizer.step()
            optimizer.zero_grad()


def validate(network, batches):
    network.eval()
    with torch.no_grad():
        return sum(mse_loss(network(x), y).item() for x, y in batches)


def main(batches, held, epochs, every):
    network = Net()
    optimizer = torch.optim.SGD(network.parameters(), lr=0.05, momentum=0.9)
    for _ in range(epochs):
        train_epoch(network, batches[: every * (len(batches) // every)], optimizer, every)
        print(validate(network, held))


if __name__ == "__main__":
    torch.manual_seed(0)
    made = [(torch.randn(4, 6), torch.randn(4, 2)) for _ in range(10)]
    main(made[:8], made[8:], 2, 4)
