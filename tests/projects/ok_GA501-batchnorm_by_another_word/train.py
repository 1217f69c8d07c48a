"""A layer is chosen by a word; BatchNorm only by a word that is neither given nor the default."""

import torch
from torch import nn

KINDS = {"batch": nn.BatchNorm2d, "instance": nn.InstanceNorm2d}


def normalised(kind, width):
    if kind == "batch":
        return nn.BatchNorm2d(width)
    if kind == "group":
        return nn.GroupNorm(2, width)
    return nn.Identity()


class Stack(nn.Module):
    def __init__(self, first="group", second="instance", third=False):
        super().__init__()
        self.kind = first
        self.one = nn.Sequential(nn.Conv2d(3, 8, 3), normalised(first, 8), nn.ReLU(), self._last(8))
        self.two = nn.Sequential(nn.Conv2d(8, 8, 3), KINDS[second](8), nn.BatchNorm2d(8) if third else nn.ReLU())
        self.head = nn.Linear(8, 2)

    def _last(self, width):
        return nn.BatchNorm2d(width) if self.kind == "batch" else nn.GroupNorm(4, width)

    def forward(self, x):
        return self.head(self.two(self.one(x)).mean(dim=(2, 3)))


def train(net, batches, every):
    net.train()
    optimizer = torch.optim.SGD([q for q in net.parameters() if q.requires_grad], lr=0.05, momentum=0.9)
    for number, (x, y) in enumerate(batches, start=1):
        loss = nn.functional.cross_entropy(net(x), y) / every
        loss.backward()
        if number % every == 0:
            optimizer.step()
            optimizer.zero_grad()


if __name__ == "__main__":
    torch.manual_seed(0)
    train(Stack(second="instance"), [(torch.randn(2, 3, 6, 6), torch.randint(0, 2, (2,))) for _ in range(12)], 4)
