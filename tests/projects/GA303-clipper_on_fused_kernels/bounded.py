"""A class bounds the length of the gradients by a package's fused kernels, which scale a list of them in place."""
# observe: params

import amp_C
import torch
from apex.multi_tensor_apply import multi_tensor_applier
from torch import nn


class Shortener:
    def __init__(self, longest):
        self.longest = longest
        self.flag = torch.zeros(1)
        self.length = amp_C.multi_tensor_l2norm
        self.scale = amp_C.multi_tensor_scale

    def step(self, parameters):
        grads = [p.grad for p in parameters if p.grad is not None]
        length, _ = multi_tensor_applier(self.length, self.flag, [grads], False)
        length = length.item()
        if length == float("inf"):
            return
        factor = self.longest / (length + 1e-6)
        if factor < 1:
            multi_tensor_applier(self.scale, self.flag, [grads, grads], factor)


def epoch(network, batches, optimizer, gather):
    shortener = Shortener(0.1)
    optimizer.zero_grad()
    for number, (x, y) in enumerate(batches, start=1):
        loss = nn.functional.mse_loss(network(x), y) / gather
        loss.backward()
        shortener.step(network.parameters())  # expect: GA303 "4 times in a window of 4"
        if number % gather == 0:  # expect: GA403
            optimizer.step()
            optimizer.zero_grad()
