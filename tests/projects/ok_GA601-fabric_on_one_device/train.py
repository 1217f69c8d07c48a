"""Fabric on one device has nobody to share gradients with."""

import torch
from lightning import Fabric
from torch import nn


def learn(fabric, net, optimizer, loader, accum):
    for i, batch in enumerate(loader):
        loss = nn.functional.mse_loss(net(batch), batch[:, :2] + 1) / accum
        fabric.backward(loss)
        if (i + 1) % accum == 0 or i + 1 == 12:
            optimizer.step()
            optimizer.zero_grad()


def main():
    fabric = Fabric(accelerator="cpu", devices=1, precision="bf16-true")
    fabric.launch()
    net = nn.Linear(6, 2)
    net, optimizer = fabric.setup(net, torch.optim.SGD(net.parameters(), lr=0.1))
    learn(fabric, net, optimizer, [torch.randn(8, 6) for _ in range(12)], accum=4)


if __name__ == "__main__":
    main()
