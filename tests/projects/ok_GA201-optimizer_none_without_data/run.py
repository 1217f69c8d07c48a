"""`optimizer = None` is the way without training data; with data each batch is cleared, computed and stepped."""

from factory import make
from loop import train_one_epoch
from torch.nn.parallel import DistributedDataParallel


def main(model, data, args):
    model = DistributedDataParallel(model)
    optimizer = None
    if args.train_data:
        optimizer = make(model)
    for epoch in range(args.epochs):
        train_one_epoch(model, data, epoch, optimizer)
