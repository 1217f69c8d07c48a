import torch
from torch import nn


class Both(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(6, 2)
        self.judge = nn.Linear(2, 1)

    def forward(self, x):
        return nn.functional.mse_loss(self.body(x), x[:, :2] + 1)

    def judged(self, x):
        return nn.functional.softplus(self.judge(self.body(x).detach())).mean()


class Scheduled:
    def __init__(self, parameters):
        self.inner = torch.optim.SGD(parameters, lr=0.05)

    def step_and_update_lr(self):
        self.inner.step()

    def zero_grad(self):
        self.inner.zero_grad()
