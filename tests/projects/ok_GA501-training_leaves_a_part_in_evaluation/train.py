"""The training code leaves one part of the network in evaluation, beside the others that it sets to train."""

import torch
from torch import nn


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU())
        self.head = nn.Linear(8, 2)

    def forward(self, x):
        return self.head(self.body(x).mean(dim=(2, 3)))


def train(net, batches, every):
    net.train()
    for layer in net.body.children():
        layer.eval()
    optimizer = torch.optim.SGD([q for q in net.parameters() if q.requires_grad], lr=0.05, momentum=0.9)
    for number, (x, y) in enumerate(batches, start=1):
        loss = nn.functional.cross_entropy(net(x), y) / every
        loss.backward()
        if number % every == 0:
            optimizer.step()
            optimizer.zero_grad()


if __name__ == "__main__":
    torch.manual_seed(0)
    train(Tagger(), [(torch.randn(2, 3, 6, 6), torch.randint(0, 2, (2,))) for _ in range(12)], 4)
