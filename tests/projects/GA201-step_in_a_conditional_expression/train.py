"""The step and the clear stand in conditional expressions that are statements by themselves."""
# observe: params

import torch
from torch import nn
from torch.nn.functional import mse_loss


class Learner:
    def __init__(self, network, every):
        self.network = network
        self.optimizer = torch.optim.SGD(network.parameters(), lr=0.05, momentum=0.9)
        self.every = every
        self.seen = 0

    def learn(self, inputs, targets):
        self.seen += 1
        loss = mse_loss(self.network(inputs), targets)
        loss.backward()  # expect: GA201
        self.optimizer.step() if self.seen % self.every == 0 else None
        self.optimizer.zero_grad() if self.seen % self.every == 0 else None


if __name__ == "__main__":
    torch.manual_seed(0)
    learner = Learner(nn.Linear(6, 2), 4)
    for _ in range(8):
        learner.learn(torch.randn(4, 6), torch.randn(4, 2))
