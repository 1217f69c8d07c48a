"""Two terms with weights written out, and the mean of two terms: none of these numbers is 1/N."""
# observe: params

import torch
from torch import nn


def fit(net, batches, every):
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for index, (inputs, wanted) in enumerate(batches):
        shown = net(inputs)
        loss = 0.5 * nn.functional.mse_loss(shown, wanted) + 0.1 * nn.functional.l1_loss(shown, wanted)
        loss.backward()  # expect: GA201
        if (index + 1) % every == 0 or index + 1 == len(batches):
            optimizer.step()
            optimizer.zero_grad()


def fit_pairs(net, batches, every):
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for index, (one, other) in enumerate(batches):
        there, back = nn.functional.mse_loss(net(one), other), nn.functional.mse_loss(net(other), one)
        loss = (there + back) / 2
        loss.backward()  # expect: GA201
        if (index + 1) % every == 0 or index + 1 == len(batches):
            optimizer.step()
            optimizer.zero_grad()
