from types import SimpleNamespace

import torch
from torch import nn
from train import train


class ActorCritic(nn.Module):
    def __init__(self):
        super().__init__()
        self.actor, self.critic = nn.Linear(6, 1), nn.Linear(6, 1)

    def forward(self, x):
        return nn.functional.logsigmoid(self.actor(x)), self.critic(x)


torch.manual_seed(0)
inputs = [torch.randn(8, 6) for _ in range(12)]
loader = [(x, x[:, :1], x.sum(dim=1, keepdim=True)) for x in inputs]
train(ActorCritic(), loader, SimpleNamespace(epochs=1, accumulation_steps=4))
