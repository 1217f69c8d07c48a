"""The count runs on over the epochs and each epoch begins with a clear: nine micro-batches at first, then one."""

# observe: params
import torch
from torch import nn


def learn(net, batches, optimizer, accum, epochs):
    count = 0
    for _ in range(epochs):
        optimizer.zero_grad()
        for batch in batches:
            loss = nn.functional.mse_loss(net(batch), batch[:, :2] + 1) / accum
            loss.backward()
            if count > 0 and count % accum == 0:  # expect: GA401 "have 9, 1 micro-batches"
                optimizer.step()
                optimizer.zero_grad()
            count += 1


if __name__ == "__main__":
    net = nn.Linear(6, 2)
    learn(net, [torch.randn(8, 6) for _ in range(16)], torch.optim.SGD(net.parameters(), lr=0.1), accum=8, epochs=2)
