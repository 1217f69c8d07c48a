"""Schedules of the first transformers libraries: the length counts updates, and every micro-batch advances it."""
# observe: none

import torch
from pytorch_transformers import WarmupLinearSchedule


def fit(net, batches, args):
    optimizer = torch.optim.SGD(net.parameters(), lr=args.rate)
    updates = len(batches) // args.accumulation * args.epochs
    schedule = WarmupLinearSchedule(optimizer, warmup_steps=updates // 10, t_total=updates)
    for _ in range(args.epochs):
        for index, (inputs, targets) in enumerate(batches):
            loss = torch.nn.functional.mse_loss(net(inputs), targets) / args.accumulation
            loss.backward()
            schedule.step()  # expect: GA404
            if (index + 1) % args.accumulation == 0 or index + 1 == len(batches):  # expect: GA205
                optimizer.step()
                optimizer.zero_grad()
