"""Steps are taken from some epoch on; each pass begins with a clear, so its tail is lost."""

# observe: params
import torch
from torch import nn


def epoch_of(network, optimizer, batches, conf, epoch):
    optimizer.zero_grad()
    for number, x in enumerate(batches):
        (network(x).pow(2).mean() / conf.gather).backward()
        if epoch >= conf.thaw and (number + 1) % conf.gather == 0:  # expect: GA403
            optimizer.step()
            optimizer.zero_grad()


class Settings:
    thaw, gather = 1, 4


if __name__ == "__main__":
    net = nn.Linear(6, 2)
    sgd = torch.optim.SGD(net.parameters(), lr=0.05)
    for turn in range(1, 3):
        epoch_of(net, sgd, [torch.randn(8, 6) for _ in range(10)], Settings, turn)
