"""What trains on a batch is looked up in a dictionary, by a name from the settings."""
# observe: params

import torch
from torch import nn


def plain(net, batch):
    inputs, wanted = batch
    loss = nn.functional.mse_loss(net(inputs), wanted)
    loss.backward()  # expect: GA201
    return loss.item()


WAYS = {"plain": plain}


def fit(net, batches, way, every):
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    learn = WAYS[way]
    for index, batch in enumerate(batches):
        learn(net, batch)
        if (index + 1) % every == 0 or index + 1 == len(batches):
            optimizer.step()
            optimizer.zero_grad()
