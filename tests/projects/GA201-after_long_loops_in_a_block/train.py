"""Three loops of one function: two over more steps than a run shows, one of them in a block, and the one with the windows."""
# observe: params

import torch
from torch import nn
from torch.nn.functional import mse_loss


def warm(network, steps):
    optimizer = torch.optim.SGD(network.parameters(), lr=0.05)
    for _ in range(steps):
        optimizer.zero_grad()
        mse_loss(network(torch.randn(4, 6)), torch.randn(4, 2)).backward()
        optimizer.step()


def main():
    torch.manual_seed(0)
    network = nn.Linear(6, 2)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.05)
    for _ in range(200):
        optimizer.zero_grad()
        mse_loss(network(torch.randn(4, 6)), torch.randn(4, 2)).backward()
        optimizer.step()
    batches = [(torch.randn(4, 6), torch.randn(4, 2)) for _ in range(8)]
    with torch.autograd.set_detect_anomaly(False):
        for _ in range(200):
            optimizer.zero_grad()
            mse_loss(network(torch.randn(4, 6)), torch.randn(4, 2)).backward()
            optimizer.step()
        optimizer.zero_grad()
        for number, (inputs, targets) in enumerate(batches, 1):
            mse_loss(network(inputs), targets).backward()  # expect: GA201
            if number % 4 == 0:
                optimizer.step()
                optimizer.zero_grad()


if __name__ == "__main__":
    warm(nn.Linear(6, 2), 100)
    main()
