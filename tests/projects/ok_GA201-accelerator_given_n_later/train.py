"""The Accelerator learns N after it was made, so that its own `backward` divides."""

import torch.nn.functional as F
from accelerate import Accelerator
from torch.optim import AdamW


def train(args, net, batches):
    accelerator = Accelerator(mixed_precision=args.precision)
    accelerator.gradient_accumulation_steps = args.accum
    optimizer = AdamW(net.parameters(), lr=args.lr)
    net, optimizer, batches = accelerator.prepare(net, optimizer, batches)
    for _ in range(args.epochs):
        optimizer.zero_grad()
        for i in range(args.steps * args.accum):
            x, y = next(batches)
            loss = F.cross_entropy(net(x), y)
            accelerator.backward(loss)
            if (i + 1) % args.accum == 0:
                optimizer.step()
                optimizer.zero_grad()
