"""An epoch goes over the loaders of several files; the count of micro-batches goes on from file to file, not from epoch to epoch."""
# observe: params

import os

import torch
from reading import read
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def loaders(files, args):
    for name in files:
        x, y = read(name)
        yield DataLoader(TensorDataset(x, y), batch_size=args.batch_size)


def train(args):
    files = [name for name in sorted(os.listdir(args.folder)) if name.startswith("part")]
    network = nn.Linear(6, 2)
    optimizer = torch.optim.AdamW(network.parameters())
    for _ in range(args.epochs):
        seen = 0
        for loader in loaders(files, args):
            for x, y in loader:
                loss = nn.functional.mse_loss(network(x), y)
                if args.accumulate > 1:
                    loss = loss / args.accumulate
                loss.backward()
                seen += 1
                if seen % args.accumulate == 0:  # expect: GA402
                    optimizer.step()
                    optimizer.zero_grad()
