"""A penalty that is None by default, with a weight of 0 by default, is added undivided where it is given."""

# observe: params
import torch
from torch import nn


def epoch_of(network, batches, optimizer, measure, penalty=None, weight=0.0, gather=16):
    network.train()
    for number, (x, y) in enumerate(batches):
        loss = measure(network(x), y)
        if penalty is None:
            loss_more = 0
        else:
            loss_more = penalty(network) * weight
        loss = loss / gather + loss_more
        loss.backward()  # expect: GA204
        if (number + 1) % gather == 0:
            optimizer.step()
            optimizer.zero_grad()


def squares(network):
    return sum(p.pow(2).sum() for p in network.parameters())


if __name__ == "__main__":
    net = nn.Linear(6, 2)
    data = [(torch.randn(8, 6), torch.randn(8, 2)) for _ in range(8)]
    epoch_of(net, data, torch.optim.SGD(net.parameters(), lr=0.05), nn.functional.mse_loss, squares, 0.1, 4)
