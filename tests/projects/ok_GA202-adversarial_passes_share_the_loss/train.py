"""Each batch is passed several times, perturbed anew, and every pass has its share of the loss."""

import torch


def passes(network, batch, args):
    delta = torch.zeros_like(batch["x"])
    for _ in range(args.adv_steps):
        delta.requires_grad_()
        loss = network(batch["x"] + delta, batch["y"])
        if args.gradient_accumulation_steps > 1:
            loss = loss / args.gradient_accumulation_steps
        loss = loss / args.adv_steps
        loss.backward()
        delta = (delta + args.adv_lr * delta.grad.sign()).detach()


def train(network, optimizer, loader, args):
    for step, batch in enumerate(loader):
        passes(network, batch, args)
        if (step + 1) % args.gradient_accumulation_steps == 0:
            optimizer.step()
            optimizer.zero_grad()
