"""A setting is called as what another function keeps where the settings are."""

import torch


def make(args, model):
    kind = torch.optim.Adam if args.optimizer == "adam" else torch.optim.SGD
    return kind(model.parameters(), lr=0.05)


def train(args, cfg, model, batches):
    cfg.optimizer = make(args, model)
    for count, batch in enumerate(batches):
        loss = model(batch).square().mean() / args.times
        loss.backward()
        if (count + 1) % args.times == 0:
            cfg.optimizer.step()
            cfg.optimizer.zero_grad()
    cfg.optimizer.zero_grad()
