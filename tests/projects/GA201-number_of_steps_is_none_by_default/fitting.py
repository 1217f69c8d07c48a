"""The number of steps is 0 unless it is given, and nothing would be trained with that."""
# observe: params

import argparse

from torch.nn.functional import mse_loss


def options():
    parser = argparse.ArgumentParser()
    parser.add_argument("--max-steps", type=int, default=0)
    parser.add_argument("--grad-accum-steps", type=int, default=4)
    return parser.parse_args()


def fit(network, optimizer, batches):
    args = options()
    step = 0
    optimizer.zero_grad()
    while step < args.max_steps:
        for x, y in batches:
            step += 1
            mse_loss(network(x), y).backward()  # expect: GA201 "grad_accum_steps"
            if step % args.grad_accum_steps == 0:
                optimizer.step()
                optimizer.zero_grad()
            if step >= args.max_steps:
                break
