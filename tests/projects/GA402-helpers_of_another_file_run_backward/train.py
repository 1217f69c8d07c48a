"""The loop is here; backward, step and clear are functions of another file."""

# observe: params
import torch
from helpers import run_backward, run_forward, update
from torch import nn


class Runner:
    def epoch(self, network, optimizer, batches, conf):
        told = dict(conf)
        for number, x in enumerate(batches):
            told["number"] = number
            told = run_forward(network, x, told)
            told = run_backward(told)
            told = update(optimizer, told)  # expect: GA402


if __name__ == "__main__":
    torch.manual_seed(0)
    net = nn.Linear(6, 2)
    sgd = torch.optim.SGD(net.parameters(), lr=0.05)
    for _ in range(2):
        Runner().epoch(net, sgd, [torch.randn(8, 6) for _ in range(10)], {"gather": 4})
