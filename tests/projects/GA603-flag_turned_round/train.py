"""The flag is on for all micro-batches but the last, and N is an attribute that is called as gradients are."""
# observe: ranks

import argparse

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Trainer:
    def __init__(self, network, batches, grad):
        self.network = DistributedDataParallel(network)
        self.optimizer = torch.optim.SGD(network.parameters(), lr=0.05, momentum=0.9)
        self.batches = batches
        self.grad = grad

    def train(self):
        self.optimizer.zero_grad()
        for number, (x, y) in enumerate(self.batches):
            self.network.require_backward_grad_sync = (number + 1) % self.grad != 0  # expect: GA603
            loss = nn.functional.mse_loss(self.network(x), y) / self.grad
            loss.backward()  # expect: GA601 "3 of 4"
            if (number + 1) % self.grad == 0:
                self.optimizer.step()
                self.optimizer.zero_grad()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--grad", type=int)
    args = parser.parse_args(["--grad", "4"])
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    batches = [(torch.randn(8, 6), torch.randn(8, 2)) for _ in range(8)]
    Trainer(nn.Linear(6, 2), batches, args.grad).train()
    dist.destroy_process_group()
