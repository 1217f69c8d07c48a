"""What scales the losses is handed over, and known by what is called on it."""
# observe: params

import torch
from torch.nn.functional import mse_loss


def train(network, optimizer, grown, loader, gather):
    optimizer.zero_grad()
    for number, (x, y) in enumerate(loader):
        loss = mse_loss(network(x), y) / gather
        grown.scale(loss).backward()
        if (number + 1) % gather == 0 or number + 1 == len(loader):  # expect: GA205
            torch.nn.utils.clip_grad_norm_(network.parameters(), 0.5)  # expect: GA302
            grown.step(optimizer)
            grown.update()
            optimizer.zero_grad()
