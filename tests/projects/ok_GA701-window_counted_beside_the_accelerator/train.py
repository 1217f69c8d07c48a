"""The Accelerator divides by N, and the loop says itself where a window ends: by a guard, or by the Accelerator's own flag."""

import torch
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

N = 4


def by_a_guard(accelerator, net, optimizer, loader):
    for index, (features, target) in enumerate(loader, start=1):
        accelerator.backward(nn.functional.mse_loss(net(features), target))
        if index % N == 0:
            optimizer.step()
            optimizer.zero_grad()


def by_the_flag(accelerator, net, optimizer, loader):
    for index, (features, target) in enumerate(loader, start=1):
        accelerator.gradient_state._set_sync_gradients(index % N == 0)
        accelerator.backward(nn.functional.mse_loss(net(features), target))
        optimizer.step()
        optimizer.zero_grad()


def main():
    accelerator = Accelerator(gradient_accumulation_steps=N, cpu=True)
    torch.manual_seed(0)
    x = torch.randn(64, 8)
    loader = DataLoader(TensorDataset(x, x.sum(dim=1, keepdim=True)), batch_size=4)
    net = nn.Linear(8, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    net, optimizer, loader = accelerator.prepare(net, optimizer, loader)
    by_a_guard(accelerator, net, optimizer, loader)
    by_the_flag(accelerator, net, optimizer, loader)


if __name__ == "__main__":
    main()
