"""One of two options is asked on the way to the training, and a condition that joins them wraps the network."""
# observe: allreduces

import argparse

import torch
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def train(rank, args):
    if not args.cpu and not args.single_gpu:
        torch.distributed.init_process_group("nccl", world_size=args.world_size, rank=rank)
    model = nn.Linear(8, 4)
    if not args.cpu and not args.single_gpu:
        model = DistributedDataParallel(model, device_ids=[rank])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = [(torch.randn(4, 8), torch.randint(0, 4, (4,))) for _ in range(8)]
    for index, (x, y) in enumerate(loader):
        loss = nn.functional.cross_entropy(model(x), y) / args.accumulate
        loss.backward()  # expect: GA601
        if (index + 1) % args.accumulate == 0:
            optimizer.step()
            optimizer.zero_grad()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--cpu", action="store_true")
    parser.add_argument("--single_gpu", action="store_true")
    parser.add_argument("--world_size", type=int, default=2)
    parser.add_argument("--accumulate", type=int, default=4)
    args = parser.parse_args()
    if args.cpu:
        train(-1, args)
    elif args.single_gpu:
        train(0, args)
    else:
        mp.spawn(train, nprocs=args.world_size, args=(args,))


if __name__ == "__main__":
    main()
