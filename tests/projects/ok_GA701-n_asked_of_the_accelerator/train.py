"""The Accelerator's own N is read, which `accelerate launch` may have given it: the program has no N of its own."""

import torch
from accelerate import Accelerator
from torch import nn


def train(network, loader, epochs):
    accelerator = Accelerator()
    optimizer = torch.optim.SGD(network.parameters(), lr=0.05)
    network, optimizer, loader = accelerator.prepare(network, optimizer, loader)
    updates = epochs * len(loader) // accelerator.gradient_accumulation_steps
    for _ in range(epochs):
        for x in loader:
            with accelerator.accumulate(network):
                accelerator.backward(nn.functional.mse_loss(network(x), x))
                optimizer.step()
                optimizer.zero_grad()
    return updates
