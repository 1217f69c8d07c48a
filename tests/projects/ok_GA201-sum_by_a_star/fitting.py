"""The criterion, whose package a star imports, sums; its loss is divided by the number of all samples of a window."""

from common import *


def fit(settings, net, batches):
    criterion = nn.MSELoss(reduction="sum")
    optimizer = optim.SGD(net.parameters(), lr=settings.lr)
    for number, (x, y) in enumerate(batches, start=1):
        loss = criterion(net(x), y) / settings.samples
        loss.backward()
        if number % settings.every == 0:
            optimizer.step()
            optimizer.zero_grad()


def fit_by_function(settings, net, batches):
    optimizer = optim.SGD(net.parameters(), lr=settings.lr)
    for number, (x, y) in enumerate(batches, start=1):
        F.mse_loss(net(x), y, reduction="sum").backward()
        if number % settings.every == 0:
            optimizer.step()
            optimizer.zero_grad()
