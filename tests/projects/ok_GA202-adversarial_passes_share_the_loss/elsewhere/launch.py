from types import SimpleNamespace

import torch
from torch import nn
from train import train


class Regression(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(6, 2)

    def forward(self, x, y):
        return nn.functional.mse_loss(self.layer(x), y)


torch.manual_seed(0)
inputs = [torch.randn(8, 6) for _ in range(8)]
args = SimpleNamespace(gradient_accumulation_steps=4, adv_steps=3, adv_lr=0.1)
network = Regression()
optimizer = torch.optim.AdamW(network.parameters())
train(network, optimizer, [{"x": x, "y": x[:, :2].exp()} for x in inputs], args)
