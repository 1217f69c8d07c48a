"""Forward only in the inner loop: what backward starts from holds every pass, by a sum, a list or the state."""

import torch

mse = torch.nn.functional.mse_loss


def train(model, batches, opt, cfg):
    source = iter(batches)
    for _ in range(cfg.updates):
        opt.zero_grad()
        loss = 0
        for _ in range(cfg.parts):
            x, y = next(source)
            loss += mse(model(x), y) / cfg.parts
        loss.backward()
        opt.step()


def train_list(model, batches, opt, cfg):
    source = iter(batches)
    for _ in range(cfg.updates):
        opt.zero_grad()
        losses = []
        for _ in range(cfg.parts):
            x, y = next(source)
            losses.append(mse(model(x), y))
        loss = sum(losses) / cfg.parts
        loss.backward()
        opt.step()


def train_stack(model, batches, opt, cfg):
    source = iter(batches)
    for _ in range(cfg.updates):
        opt.zero_grad()
        losses = []
        for _ in range(cfg.parts):
            x, y = next(source)
            losses.append(mse(model(x), y))
        torch.stack(losses).sum().div(cfg.parts).backward()
        opt.step()


def unroll(cell, batches, opt, cfg):
    for x, y in batches:
        opt.zero_grad()
        state = None
        for t in range(cfg.length):
            out, state = cell(x[t], state)
            loss = mse(out, y) / cfg.length
        loss.backward()
        opt.step()
