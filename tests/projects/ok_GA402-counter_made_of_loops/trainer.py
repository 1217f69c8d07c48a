"""The micro-batches are counted through all epochs, by the numbers of the loops and the sizes of what is inside them."""

import torch
from torch import nn


def grouped(net, groups, settings):
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(settings["epochs"]):
        for i, group in enumerate(groups):
            for j, batch in enumerate(group):
                count = i * settings["group"] + j + epoch * len(groups) * settings["group"] + 1
                loss = nn.functional.mse_loss(net(batch), batch[:, :2] + 1) / settings["accum"]
                loss.backward()
                if count % settings["accum"] != 0:
                    continue
                optimizer.step()
                optimizer.zero_grad()


def flat(net, batches, settings, in_an_epoch):
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(settings["epochs"]):
        for i, batch in enumerate(batches):
            count = epoch * in_an_epoch + i
            loss = nn.functional.mse_loss(net(batch), batch[:, :2] + 1) / settings["accum"]
            loss.backward()
            if (count + 1) % settings["accum"] == 0:
                optimizer.step()
                optimizer.zero_grad()
