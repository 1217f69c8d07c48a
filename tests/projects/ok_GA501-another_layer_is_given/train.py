"""The building block falls back on BatchNorm when no layer is given, but the network gives it another one."""

import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, inside, outside, norm_layer=None):
        super().__init__()
        if norm_layer is None:
            norm_layer = nn.BatchNorm2d
        self.conv = nn.Conv2d(inside, outside, 3, padding=1)
        self.norm = norm_layer(outside)

    def forward(self, x):
        return self.norm(self.conv(x)).relu()


class Stack(nn.Module):
    def __init__(self, block, depth, norm_layer=nn.BatchNorm2d):
        super().__init__()
        self._norm_layer = norm_layer
        self.first = block(3, 8, norm_layer)
        self.rest = self._row(block, depth)
        self.head = nn.Linear(8, 2)

    def _row(self, block, depth):
        norm_layer = self._norm_layer
        return nn.Sequential(*[block(8, 8, norm_layer=norm_layer) for _ in range(depth)])

    def forward(self, x):
        return self.head(self.rest(self.first(x)).mean(dim=(2, 3)))


def shallow(**options):
    return Stack(Block, 1, **options)


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
    train(
        shallow(norm_layer=nn.InstanceNorm2d),
        [(torch.randn(2, 3, 6, 6), torch.randint(0, 2, (2,))) for _ in range(12)],
        4,
    )
