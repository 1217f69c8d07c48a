"""The Accelerator moves and wraps; the loop counts the window itself and forgets to divide."""

import torch.nn.functional as F
from accelerate import Accelerator
from torch.optim import AdamW


def train(args, net, batches):
    accelerator = Accelerator(mixed_precision=args.precision)
    optimizer = AdamW(net.parameters(), lr=args.lr)
    net, optimizer, batches = accelerator.prepare(net, optimizer, batches)
    for _ in range(args.epochs):
        for i, (x, y) in enumerate(batches):
            loss = F.cross_entropy(net(x), y)
            accelerator.backward(loss)  # expect: GA201 "without 1/N"
            if (i + 1) % args.accum == 0 or i + 1 == len(batches):
                optimizer.step()
                optimizer.zero_grad()
