"""Gradients are unscaled where they are logged or clipped: where they are clipped, they are unscaled."""

import torch
from torch.nn.functional import mse_loss


def fit(options, network, stream, optimizer):
    scaler = torch.amp.GradScaler("cpu")
    for number in range(1, options.updates * options.window + 1):
        x, y = next(stream)
        scaler.scale(mse_loss(network(x), y) / options.window).backward()
        if number % options.window == 0:
            if options.norm_in_log or (options.norm_limit > 0):
                scaler.unscale_(optimizer)
            if options.norm_limit > 0:
                torch.nn.utils.clip_grad_norm_(network.parameters(), options.norm_limit)
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()


def fit_unless_off(options, network, stream, optimizer):
    scaler = torch.amp.GradScaler("cpu")
    for number in range(1, options.updates * options.window + 1):
        x, y = next(stream)
        scaler.scale(mse_loss(network(x), y) / options.window).backward()
        if number % options.window == 0:
            if not (options.plain and options.limit_off):
                scaler.unscale_(optimizer)
            if not options.limit_off:
                torch.nn.utils.clip_grad_norm_(network.parameters(), 1e3)
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()
