"""The trainer's base class is given a type; the loop and the step are in it."""

# observe: params
import torch
from typed.base import Trainer
from torch import nn


class Regression(Trainer[nn.Linear]):
    def train_step(self, batch):
        loss = nn.functional.mse_loss(self.net(batch), batch[:, :2] + 1)
        loss.backward()  # expect: GA201
        self.close()


if __name__ == "__main__":
    net = nn.Linear(6, 2)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
    Regression(net, optimizer, [torch.randn(8, 6) for _ in range(8)]).learn(2)
