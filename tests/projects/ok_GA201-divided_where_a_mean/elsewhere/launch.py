from types import SimpleNamespace

import torch
from torch import nn
from train import train


def main():
    torch.manual_seed(0)
    net = nn.Linear(6, 3)
    batches = [(torch.randn(32, 6), torch.randint(0, 3, (32,))) for _ in range(3)]
    settings = SimpleNamespace(PARTS=4, SIZE=8, LOSS_REDUCTION="mean")
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    train(net, nn.CrossEntropyLoss(reduction=settings.LOSS_REDUCTION), optimizer, batches, settings)


if __name__ == "__main__":
    main()
