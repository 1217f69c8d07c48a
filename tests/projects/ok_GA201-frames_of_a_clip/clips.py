"""A clip is one micro-batch, however many frames its loss is the mean of; it is divided by the number of clips."""

import torch
from torch.nn.functional import mse_loss


def fit(network, optimizer, stream, options):
    for number in range(1, options.updates * options.window + 1):
        frames, wanted = next(stream)
        losses, state = [], None
        for t in range(frames.size(1)):
            guess, state = network(frames[:, t], state)
            losses.append(mse_loss(guess, wanted[:, t]))
        (torch.stack(losses).mean() / options.window).backward()
        if number % options.window == 0:
            optimizer.step()
            optimizer.zero_grad()
