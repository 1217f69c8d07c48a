"""A runner is told to run backward, and told to step after every N of them: it does not count by itself."""

# observe: params
import torch
from torch import nn


class Runner:
    def __init__(self, network, optimizer, gather):
        self.network, self.optimizer, self.gather = network, optimizer, gather

    def backward(self, loss):
        (loss / self.gather).backward()

    def step(self):
        self.optimizer.step()
        self.optimizer.zero_grad()


def one_pass(batches, runner: Runner, gather):
    for number, x in enumerate(batches):
        runner.backward(runner.network(x).pow(2).mean())
        if (number + 1) % gather == 0:  # expect: GA402
            runner.step()


def start(gather):
    net = nn.Linear(6, 2)
    runner = Runner(net, torch.optim.SGD(net.parameters(), lr=0.05), gather)
    data = [torch.randn(8, 6) for _ in range(10)]
    passes = [one_pass] * 2
    while passes:
        passes.pop()(data, runner, gather)


if __name__ == "__main__":
    start(4)
