"""The number of a micro-batch comes out of something that galint cannot see; where it begins, nobody knows."""

# observe: params
import torch
from progress import numbered_from
from torch import nn


def train(network, optimizer, batches, gather):
    optimizer.zero_grad()
    for number, (x, y) in numbered_from(1, batches):
        loss = nn.functional.mse_loss(network(x), y)
        loss.backward()  # expect: GA201
        if number % gather == 0:  # expect: GA403
            optimizer.step()
            optimizer.zero_grad()


if __name__ == "__main__":
    net = nn.Linear(6, 2)
    data = [(torch.randn(8, 6), torch.randn(8, 2)) for _ in range(8)]
    train(net, torch.optim.SGD(net.parameters(), lr=0.05), data, 4)
