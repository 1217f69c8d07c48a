"""A clip is one micro-batch, however many frames its loss is the mean of."""
# observe: params

import torch
from torch.nn.functional import mse_loss


def fit(network, optimizer, clips, options):
    optimizer.zero_grad()
    for number, (frames, wanted) in enumerate(clips):
        losses, state = [], None
        for t in range(frames.size(1)):
            guess, state = network(frames[:, t], state)
            losses.append(mse_loss(guess, wanted[:, t]))
        torch.stack(losses).mean().backward()  # expect: GA201 "`options.window` = 4"
        if (number + 1) % options.window == 0:  # expect: GA403
            optimizer.step()
            optimizer.zero_grad()
