"""Step and clear stand inside the loop of N micro-batches whose losses are divided by N; passes over one batch are no window."""

# observe: params
import torch
from torch import nn

GATHER = 4


def train(network, optimizer, batches):
    for _ in range(2):
        for _ in range(GATHER):
            loss = network(next(batches)).pow(2).mean()
            (loss / GATHER).backward()
            optimizer.step()  # expect: GA401
            optimizer.zero_grad()


def refine(network, optimizer, batches, passes):
    for x in batches:
        for _ in range(passes):
            loss = network(x).pow(2).mean() / passes
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()


if __name__ == "__main__":
    net = nn.Linear(6, 2)
    train(net, torch.optim.SGD(net.parameters(), lr=0.05), iter([torch.randn(8, 6) for _ in range(8)]))
