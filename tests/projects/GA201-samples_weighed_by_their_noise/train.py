"""Each sample has a weight of its own, made of the micro-batch's data: none of them is the missing 1/N."""
# observe: params

import torch
from torch import nn


def fit(net, batches, most, every):
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for index, (inputs, wanted, noise) in enumerate(batches):
        ratio = 1 / noise**2
        weights = torch.clamp(ratio, max=most) / ratio.clamp(min=1e-5)
        losses = nn.functional.mse_loss(net(inputs), wanted, reduction="none").mean(dim=1)
        loss = (losses * weights).mean()
        loss.backward()  # expect: GA201
        if (index + 1) % every == 0 or index + 1 == len(batches):
            optimizer.step()
            optimizer.zero_grad()


def fit_relative(net, batches, every):
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for index, (inputs, wanted, _) in enumerate(batches):
        apart = (net(inputs) - wanted).pow(2).mean(dim=1) / (1e-7 + wanted.pow(2).mean(dim=1))
        loss = apart.mean()
        loss.backward()  # expect: GA201
        if (index + 1) % every == 0 or index + 1 == len(batches):
            optimizer.step()
            optimizer.zero_grad()
