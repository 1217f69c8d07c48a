"""Training is refused where the output folder is in use, by a check inside a check."""

# observe: params
import argparse
import os

import torch
from torch import nn


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--do_train", default=False, action="store_true")
    parser.add_argument("--do_eval", default=False, action="store_true")
    parser.add_argument("--output", default="results")
    parser.add_argument("--accum", type=int, default=4)
    args = parser.parse_args()
    if not args.do_train and not args.do_eval:
        raise ValueError("nothing to do")
    if os.path.exists(args.output) and os.listdir(args.output):
        if args.do_train:
            raise ValueError(f"{args.output} is not empty")
    else:
        os.makedirs(args.output, exist_ok=True)
    batches = None
    if args.do_train:
        batches = [torch.randn(8, 6) for _ in range(10)]
    net = nn.Linear(6, 2)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    if args.do_train:
        for _ in range(2):
            for step, batch in enumerate(batches):
                loss = nn.functional.mse_loss(net(batch), batch[:, :2] + 1) / args.accum
                loss.backward()
                if (step + 1) % args.accum == 0:  # expect: GA402
                    optimizer.step()
                    net.zero_grad()


if __name__ == "__main__":
    main()
