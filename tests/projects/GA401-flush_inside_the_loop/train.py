"""What is meant for the end of an epoch stands in its loop: one condition or the other steps on every micro-batch."""

# observe: params
import torch
from torch import nn


def train_epoch(net, batches, optimizer, accum):
    optimizer.zero_grad()
    for i, batch in enumerate(batches):
        loss = nn.functional.mse_loss(net(batch), batch[:, :2] + 1) / accum
        loss.backward()
        if (i + 1) % accum == 0:
            optimizer.step()
            optimizer.zero_grad()
        if (i + 1) % accum != 0:  # expect: GA401
            optimizer.step()
            optimizer.zero_grad()


if __name__ == "__main__":
    net = nn.Linear(6, 2)
    train_epoch(net, [torch.randn(8, 6) for _ in range(8)], torch.optim.SGD(net.parameters(), lr=0.1), 4)
