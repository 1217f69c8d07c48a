from types import SimpleNamespace

import torch
from strategy import Strategy
from torch import nn


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(6, 2)

    def forward(self, x):
        return SimpleNamespace(loss=nn.functional.mse_loss(self.layer(x), x[:, :2].tanh()))


class OneDevice(Strategy):
    def set_up(self):
        self.optimizer = torch.optim.SGD(self.network.parameters(), lr=0.05, momentum=0.9)
        self.scheduler = torch.optim.lr_scheduler.StepLR(self.optimizer, 10)


torch.manual_seed(0)
strategy = OneDevice(Network(), epochs=2, accumulation=4)
strategy.set_up()
strategy.run_training([{"x": torch.randn(8, 6)} for _ in range(10)])
