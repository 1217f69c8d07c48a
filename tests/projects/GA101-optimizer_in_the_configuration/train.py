"""The network and its optimizer are kept where the settings are."""
# observe: params

from dataclasses import dataclass

import torch


@dataclass
class Config:
    model: torch.nn.Module
    optimizer: torch.optim.Optimizer
    times: int = 4


def train(config: Config, batches):
    for count, batch in enumerate(batches):
        config.optimizer.zero_grad()  # expect: GA101
        loss = config.model(batch).square().mean() / config.times
        loss.backward()
        if (count + 1) % config.times == 0:
            config.optimizer.step()
