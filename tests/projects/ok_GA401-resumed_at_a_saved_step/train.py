"""A training goes on from a step that was saved, which comes after a whole number of windows."""

import os

import torch
from torch.nn.functional import mse_loss


def train(network, optimizer, stream, options):
    first = 0
    if os.path.exists(options.saved):
        held = torch.load(options.saved)
        network.load_state_dict(held["network"])
        optimizer.load_state_dict(held["optimizer"])
        first = held["step"] + 1
    else:
        print("nothing was saved")
    for step in range(first, options.gather * options.updates):
        x, y = next(stream)
        loss = mse_loss(network(x), y) / options.gather
        loss.backward()
        if (step + 1) % options.gather == 0:
            optimizer.step()
            optimizer.zero_grad()
            held = {"network": network.state_dict(), "optimizer": optimizer.state_dict(), "step": step}
            torch.save(held, options.saved)
