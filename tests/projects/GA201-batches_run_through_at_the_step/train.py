"""The batches of a window are collected, and run through one by one where the optimizer steps."""
# observe: params

import torch


def train(model, loader, optimizer, every):
    held = []
    for i, (x, y) in enumerate(loader):
        held.append((x, y))
        if (i + 1) % every == 0:
            optimizer.zero_grad()
            for a, b in held:
                torch.nn.functional.mse_loss(model(a), b).backward()  # expect: GA201
            optimizer.step()
            held = []
