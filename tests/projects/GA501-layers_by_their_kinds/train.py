"""A table says which layers a network has; that BatchNorm comes with one kind of them is no option of the network."""
# observe: params

import torch
from torch import nn


class Rows(nn.Module):
    def __init__(self, rows):
        super().__init__()
        layers = []
        for row in rows:
            if row["kind"] == "convolution":
                layers.append(nn.Conv2d(row["inside"], row["outside"], 3))
                layers.append(nn.BatchNorm2d(row["outside"]))  # expect: GA501
            elif row["kind"] == "bend":
                layers.append(nn.ReLU())
        self.layers = nn.Sequential(*layers)
        self.head = nn.Linear(8, 2)

    def forward(self, x):
        return self.head(self.layers(x).mean(dim=(2, 3)))


def train(net, batches, every):
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    for number, (x, y) in enumerate(batches, start=1):
        loss = nn.functional.cross_entropy(net(x), y) / every
        loss.backward()
        if number % every == 0:
            optimizer.step()
            optimizer.zero_grad()


if __name__ == "__main__":
    torch.manual_seed(0)
    table = [{"kind": "convolution", "inside": 3, "outside": 8}, {"kind": "bend"}]
    train(Rows(table), [(torch.randn(2, 3, 6, 6), torch.randint(0, 2, (2,))) for _ in range(12)], 4)
