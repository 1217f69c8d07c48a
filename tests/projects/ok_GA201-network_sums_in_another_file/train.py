"""The network's loss is a sum over the samples; so is that of the large batch."""

import torch
from network import Scorer

ACCUMULATION = 4


def main():
    torch.manual_seed(0)
    net = Scorer()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
    for step in range(3 * ACCUMULATION):
        loss, _ = net.score(torch.randn(8, 8), torch.randint(0, 3, (8,)))
        loss.backward()
        if (step + 1) % ACCUMULATION == 0:
            optimizer.step()
            optimizer.zero_grad()


if __name__ == "__main__":
    main()
