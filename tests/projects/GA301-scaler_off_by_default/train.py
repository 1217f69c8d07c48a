"""The scaler acts only where half precision is asked for: there the gradients are unscaled once a micro-batch."""
# observe: raises

import argparse

import torch


def options(given):
    parser = argparse.ArgumentParser()
    parser.add_argument("--precision", default="bf16")
    parser.add_argument("--pieces", type=int, default=4)
    return parser.parse_args(given)


def main(net, batches, given=None):
    args = options(given)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu", enabled=args.precision == "fp16")
    for number, (inputs, targets) in enumerate(batches, start=1):
        loss = torch.nn.functional.mse_loss(net(inputs), targets) / args.pieces
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)  # expect: GA301
        if number % args.pieces == 0:
            torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()
