"""The optimizer has a schedule of its own: it is told the number of updates, which N divides, and nothing else knows N."""
# observe: params

import torch
from scheduled import ScheduledSGD


def train(model, batches, config):
    updates = int(config["epochs"] * len(batches) / config["grad_accum"])
    optimizer = ScheduledSGD(model.parameters(), lr=0.1, warmup=0.0, t_total=updates)
    for _ in range(config["epochs"]):
        optimizer.zero_grad()
        for k, (x, y) in enumerate(batches):
            loss = torch.nn.functional.cross_entropy(model(x), y)
            loss.backward()  # expect: GA201
            if (k + 1) % config["grad_accum"] == 0 or k + 1 == len(batches):
                optimizer.step()
                optimizer.zero_grad()
