"""The gradients of the first window are measured and dropped; every later window is applied."""

import torch
from torch import nn

torch.manual_seed(0)
ACCUM = 4


def train(net, batches, optimizer):
    updates = 0
    for index in range(6 * ACCUM):
        loss = nn.functional.mse_loss(net(batches[index]), batches[index][:, :2])
        (loss / ACCUM).backward()
        if (index + 1) % ACCUM == 0:
            nn.utils.clip_grad_norm_(net.parameters(), 1e9)
            if updates > 0:
                optimizer.step()
            optimizer.zero_grad()
            updates += 1


if __name__ == "__main__":
    net = nn.Linear(6, 2)
    train(net, [torch.randn(8, 6) for _ in range(24)], torch.optim.SGD(net.parameters(), lr=0.1))
