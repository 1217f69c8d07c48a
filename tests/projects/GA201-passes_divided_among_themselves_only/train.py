"""Each batch is passed several times; the loss is shared among the passes and not among the window's batches."""
# observe: params

import torch


def passes(network, batch, args):
    delta = torch.zeros_like(batch["x"])
    for _ in range(args.adv_steps):
        delta.requires_grad_()
        loss = network(batch["x"] + delta, batch["y"])
        loss = loss / args.adv_steps
        loss.backward()  # expect: GA201
        delta = (delta + args.adv_lr * delta.grad.sign()).detach()


def train(network, optimizer, loader, args):
    for _ in range(args.epochs):
        for step, batch in enumerate(loader):
            passes(network, batch, args)
            if (step + 1) % args.gradient_accumulation_steps == 0 or step + 1 == len(loader):
                optimizer.step()
                optimizer.zero_grad()
