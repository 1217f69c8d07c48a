"""The loop that cuts the batches of a network of another file small."""
# observe: params

import torch
from nets import build_network
from torch import nn

N = 4


def train(batches, network_name="plain"):
    net, _ = build_network(network_name, 2)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for step, (x, y) in enumerate(batches, start=1):
        loss = nn.functional.cross_entropy(net(x), y)
        (loss / N).backward()  # expect: GA501
        if step % N == 0:
            optimizer.step()
            optimizer.zero_grad()


if __name__ == "__main__":
    torch.manual_seed(0)
    train([(torch.randn(2, 1, 6, 6), torch.randint(0, 2, (2,))) for _ in range(3 * N)])
