"""The learning rate falls by a new optimizer after each step: the gradients lie in the parameters, not in it."""

import torch
from torch import nn, optim


def groups(net, rate):
    def body():
        for parameter in net[0].parameters():
            if parameter.requires_grad:
                yield parameter

    return [{"params": body(), "lr": rate}, {"params": net[1].parameters(), "lr": 10 * rate}]


def train(batches, steps, every, rate):
    net = nn.Sequential(nn.Linear(8, 8), nn.Linear(8, 3))
    opt = optim.SGD(groups(net, rate), lr=rate)
    opt.zero_grad()
    for turn in range(steps):
        images, labels = next(batches)
        loss = nn.functional.cross_entropy(net(images), labels) / every
        loss.backward()
        if (turn + 1) % every == 0:
            opt.step()
            now = rate * (1 - turn / steps) ** 0.9
            opt = optim.SGD(groups(net, now), lr=now)
            opt.zero_grad()


if __name__ == "__main__":
    train(iter([(torch.randn(6, 8), torch.randint(0, 3, (6,))) for _ in range(12)]), 12, 4, 0.1)
