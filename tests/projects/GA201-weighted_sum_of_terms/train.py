"""Two terms, one of them weighed by 0.5: neither is divided by N."""
# observe: params

import torch
from torch import nn


def train(model, loader, cfg):
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-4)
    seen = 0
    for _ in range(cfg.epochs):
        for x, advantage, value in loader:
            log_probability, estimate = model(x)
            loss = -(log_probability * advantage).mean() + 0.5 * nn.functional.mse_loss(estimate, value)
            loss.backward()  # expect: GA201
            seen += 1
            if seen % cfg.accumulation_steps == 0:
                optimizer.step()
                optimizer.zero_grad()
