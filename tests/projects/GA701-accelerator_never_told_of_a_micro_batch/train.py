"""The Accelerator is given N and divides by it, but nothing ever enters `accumulate`: each micro-batch has its step."""
# observe: steps

import argparse

import torch
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def fit(options):
    accelerator = Accelerator(gradient_accumulation_steps=options.accumulation, cpu=True)
    torch.manual_seed(0)
    x = torch.randn(64, 8)
    loader = DataLoader(TensorDataset(x, x.sum(dim=1, keepdim=True)), batch_size=4)
    net = nn.Linear(8, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    net, optimizer, loader = accelerator.prepare(net, optimizer, loader)
    updates = 0
    for _ in range(2):
        for features, target in loader:
            loss = nn.functional.mse_loss(net(features), target)
            accelerator.backward(loss)  # expect: GA701 "no `accumulate()` is ever entered"
            if accelerator.sync_gradients:
                accelerator.clip_grad_norm_(net.parameters(), 1.0)
                updates += 1
            optimizer.step()
            optimizer.zero_grad()
    print(updates)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--accumulation", type=int, default=4)
    fit(parser.parse_args([]))
