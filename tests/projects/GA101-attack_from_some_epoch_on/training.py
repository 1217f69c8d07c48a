"""From an epoch on that the configuration names, each micro-batch is followed by a hostile pass."""
# observe: params

import torch
from hostility import Hostile
from torch.nn.functional import mse_loss


def fit(network, batches, cfg):
    optimizer = torch.optim.SGD(network.parameters(), lr=0.05, momentum=0.9)
    if cfg.hostile:
        hostile = Hostile(network, optimizer, cfg.rate)
    attacks = False
    for epoch in range(cfg.epochs):
        if (cfg.hostile) & (epoch >= cfg.begin):
            attacks = True
        for i, (x, y) in enumerate(batches):
            loss = mse_loss(network(x), y) / cfg.every
            loss.backward()
            if attacks:
                hostile.attack_backward(x, y)  # expect: GA101
            if (i + 1) % cfg.every == 0:  # expect: GA402
                optimizer.step()
                optimizer.zero_grad()
