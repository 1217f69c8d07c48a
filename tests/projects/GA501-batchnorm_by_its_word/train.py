"""The word that is given chooses BatchNorm, though the default does not."""
# observe: params

import torch
from torch import nn


def normalised(kind, width):
    if kind == "batch":
        return nn.BatchNorm2d(width)  # expect: GA501
    return nn.GroupNorm(2, width)


class Stack(nn.Module):
    def __init__(self, kind="group"):
        super().__init__()
        self.one = nn.Sequential(nn.Conv2d(3, 8, 3), normalised(kind, 8), nn.ReLU())
        self.head = nn.Linear(8, 2)

    def forward(self, x):
        return self.head(self.one(x).mean(dim=(2, 3)))


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
    train(Stack("batch"), [(torch.randn(2, 3, 6, 6), torch.randint(0, 2, (2,))) for _ in range(12)], 4)
