from types import SimpleNamespace

import torch
from torch import nn
from train import train


def main():
    torch.manual_seed(0)
    model = nn.Linear(6, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    batches = [(torch.randn(8, 6), torch.randint(0, 3, (8,))) for _ in range(10)]
    train(model, optimizer, batches, SimpleNamespace(epochs=3, mode="plain", accumulation=4))


if __name__ == "__main__":
    main()
