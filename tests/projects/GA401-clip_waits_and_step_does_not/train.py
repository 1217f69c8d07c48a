"""The loss is divided by N and clipping waits for N micro-batches, but the optimizer steps on each of them."""

# observe: params
import json
import os

import torch
from torch import nn


def main(settings):
    torch.manual_seed(0)
    net = nn.Linear(6, 2)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    every = settings["optimizer"]["accum_steps"]
    count = 1
    for _ in range(settings["rounds"]):
        for batch in [torch.randn(8, 6) for _ in range(8)]:
            loss = nn.functional.mse_loss(net(batch), batch[:, :2] + 1) / every
            loss.backward()
            if count % every == 0:
                nn.utils.clip_grad_norm_(net.parameters(), settings["optimizer"]["largest"])
            optimizer.step()  # expect: GA401
            optimizer.zero_grad()
            count += 1


if __name__ == "__main__":
    main(json.loads(os.environ.get("SETTINGS", '{"rounds": 2, "optimizer": {"accum_steps": 4, "largest": 1000.0}}')))
