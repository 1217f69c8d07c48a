"""N is a rank's share of the batch over the size of its parts; the loss is a sum over samples."""

import torch


def train(model, loader, opt, args):
    opt.zero_grad()
    for i, (x, y) in enumerate(loader):
        loss = torch.nn.functional.mse_loss(model(x), y, reduction="sum") / args.batch_size
        loss.backward()
        if (i + 1) % (args.batch_size // args.world_size // args.micro_batch_size) == 0 or i + 1 == len(loader):
            opt.step()
            opt.zero_grad()
