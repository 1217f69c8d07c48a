"""Batches are gathered until there are enough of them, and then run through with undivided losses."""
# observe: params

import torch
from torch import nn


def fit(net, loader, every, epochs):
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(epochs):
        gathered = []
        for batch in loader:
            gathered.append(batch)
            if len(gathered) < every:
                continue
            for inputs, wanted in gathered:
                loss = nn.functional.mse_loss(net(inputs), wanted)
                loss.backward()  # expect: GA201
            optimizer.step()
            optimizer.zero_grad()
            gathered = []
