"""The condition is the wrong way around: the micro-batch that steps is the one that is not synchronised."""

from lightning.fabric import Fabric
from torch import nn, optim


def fit(net, loader, every):
    fabric = Fabric(devices=2, strategy="ddp")
    net, optimizer = fabric.setup(net, optim.SGD(net.parameters(), lr=0.1))
    for index, (inputs, wanted) in enumerate(loader):
        steps = (index + 1) % every == 0
        with fabric.no_backward_sync(net, enabled=steps):  # expect: GA603
            loss = nn.functional.mse_loss(net(inputs), wanted) / every
            fabric.backward(loss)  # expect: GA601
        if steps:
            optimizer.step()
            optimizer.zero_grad()
