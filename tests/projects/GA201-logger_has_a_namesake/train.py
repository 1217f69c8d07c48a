"""The network has a method `info` that runs a backward; a logger's `info` is another method."""
# observe: params

import argparse

from general import check_dataset, smart_optimizer
from nets import Net


def train(opt, data, make_loader, criterion):
    data = check_dataset(data or opt.data)
    loader = make_loader(data["train"])
    model = Net()
    optimizer = smart_optimizer(model, 0.01)
    last, n = -1, opt.every
    for epoch in range(opt.epochs):
        for i, (x, y) in enumerate(loader):
            loss = criterion(model(x), y)
            loss.backward()  # expect: GA201
            ni = i + len(loader) * epoch
            if ni - last >= n:
                optimizer.step()
                optimizer.zero_grad()
                last = ni


def main(make_loader, criterion, data=None):
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=str, default="data/coco.yaml")
    parser.add_argument("--every", type=int, default=4)
    parser.add_argument("--epochs", type=int, default=2)
    train(parser.parse_args(), data, make_loader, criterion)
