"""The loop tells the Accelerator of each micro-batch, and another file's method runs it."""

import torch
from learner import Learner
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def main():
    torch.manual_seed(0)
    x = torch.randn(64, 8)
    learner = Learner(nn.Linear(8, 1), 4)
    loader = learner.accelerator.prepare(DataLoader(TensorDataset(x, x.sum(dim=1, keepdim=True)), batch_size=4))
    for features, target in loader:
        with learner.accelerator.accumulate(learner.net):
            learner.step(features, target)


if __name__ == "__main__":
    main()
