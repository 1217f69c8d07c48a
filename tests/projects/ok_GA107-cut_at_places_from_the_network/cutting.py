"""Parts of sounds."""

import torch


def slice_waves(waves, starts, size):
    parts = torch.zeros_like(waves[:, :size])
    for row in range(waves.size(0)):
        begin = int(starts[row])
        parts[row] = waves[row, begin : begin + size]
    return parts
