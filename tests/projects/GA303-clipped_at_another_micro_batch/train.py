"""Clipping waits for N as the step does, and counts otherwise: it comes after the first micro-batch of each window."""
# observe: params

from torch.nn.functional import mse_loss
from torch.nn.utils import clip_grad_norm_


def fit(network, optimizer, batches, n, bound):
    optimizer.zero_grad()
    for step, (x, y) in enumerate(batches):
        loss = mse_loss(network(x), y) / n
        loss.backward()
        if step % n == 0:
            clip_grad_norm_(network.parameters(), bound)  # expect: GA303 "after 1 of the 4"
        if (step + 1) % n == 0 or step == len(batches) - 1:  # expect: GA205
            optimizer.step()
            optimizer.zero_grad()
