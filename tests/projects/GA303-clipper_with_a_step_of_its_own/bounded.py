"""A class bounds the length of the gradients by hand; its `step` stands above the condition of the optimizer's."""
# observe: params

import torch
from torch import nn


class Bound:
    def __init__(self, longest):
        self.longest = longest

    def step(self, parameters):
        held = [p for p in parameters if p.grad is not None]
        length = torch.norm(torch.stack([p.grad.norm() for p in held]))
        factor = self.longest / (length.item() + 1e-6)
        if factor < 1:
            for p in held:
                p.grad.data.mul_(factor)


def epoch(network, batches, optimizer, gather):
    bound = Bound(0.1)
    optimizer.zero_grad()
    for number, (x, y) in enumerate(batches, start=1):
        loss = nn.functional.mse_loss(network(x), y) / gather
        loss.backward()
        bound.step(network.parameters())  # expect: GA303 "4 times in a window of 4"
        if number % gather == 0:  # expect: GA403
            optimizer.step()
            optimizer.zero_grad()
