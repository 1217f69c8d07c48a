"""A block is given BatchNorm by the network that holds it."""
# observe: params

import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, inside, outside, norm_layer=nn.InstanceNorm2d):
        super().__init__()
        self.conv = nn.Conv2d(inside, outside, 3, padding=1)
        self.norm = norm_layer(outside)

    def forward(self, x):
        return self.norm(self.conv(x)).relu()


class Stack(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = Block(3, 8, norm_layer=nn.BatchNorm2d)  # expect: GA501
        self.head = nn.Linear(8, 2)

    def forward(self, x):
        return self.head(self.first(x).mean(dim=(2, 3)))


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
    train(Stack(), [(torch.randn(2, 3, 6, 6), torch.randint(0, 2, (2,))) for _ in range(12)], 4)
