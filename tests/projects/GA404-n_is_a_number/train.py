"""The schedule is counted in updates of four micro-batches, and advances on each of them."""
# observe: none

import torch
from torch import nn


def fit(net, batches, epochs):
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=epochs * len(batches) // 4)
    for _ in range(epochs):
        for index, (inputs, wanted) in enumerate(batches):
            loss = nn.functional.mse_loss(net(inputs), wanted) / 4
            loss.backward()
            scheduler.step()  # expect: GA404
            if (index + 1) % 4 == 0 or index + 1 == len(batches):  # expect: GA205
                optimizer.step()
                optimizer.zero_grad()
