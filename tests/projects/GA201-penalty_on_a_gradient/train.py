"""A gradient is multiplied by itself, to be logged and as a penalty; the losses of the chunks are means all the same."""
# observe: params

import torch
from torch.nn.functional import mse_loss


def train(tower, optimizer, batches, size):
    for inputs, wanted in batches:
        optimizer.zero_grad()
        for chunk, target in zip(inputs.split(size), wanted.split(size), strict=True):
            chunk.requires_grad_()
            out = tower(chunk)
            slope = torch.autograd.grad(out.sum(), chunk, create_graph=True)[0]
            penalty = (slope * slope).sum(1).mean()
            loss = mse_loss(out, target) + penalty
            loss.backward()  # expect: GA201
        print(sum((weight.grad * weight.grad).sum() for weight in tower.parameters()))
        optimizer.step()
