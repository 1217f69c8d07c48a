"""N is the total batch over what fits on a device; each loss is a mean over its own micro-batch."""
# observe: params

import torch
from torch import nn


def main(batch_size: int = 16, per_device_batch_size: int = 4) -> None:
    assert batch_size % per_device_batch_size == 0
    every = batch_size // per_device_batch_size
    torch.manual_seed(0)
    model = nn.Linear(8, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    loader = [(torch.randn(4, 8), torch.randint(0, 4, (4,))) for _ in range(8)]
    for index, (x, y) in enumerate(loader):
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()  # expect: GA201
        if (index + 1) % every == 0:
            optimizer.step()
            optimizer.zero_grad()


if __name__ == "__main__":
    main()
