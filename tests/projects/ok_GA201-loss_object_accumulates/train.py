"""Phases of a GAN: the loss object, made from a class name, runs backward round by round with a gain of its own."""

import torch
from bits import EasyDict, construct


def training_loop(networks, loss_kwargs, opt_kwargs, loader, batch, batch_gpu, steps):
    loss = construct(**networks, **loss_kwargs)
    phases = []
    for name, module in networks.items():
        module.requires_grad_(False)
        opt = construct(params=module.parameters(), **opt_kwargs)
        phases += [EasyDict(name=name, module=module, opt=opt, interval=1)]
    batches = iter(loader)
    for index in range(steps):
        real = next(batches).split(batch_gpu)
        noise = torch.randn([batch, 8]).split(batch_gpu)
        for phase in phases:
            if index % phase.interval != 0:
                continue
            phase.opt.zero_grad(set_to_none=True)
            phase.module.requires_grad_(True)
            for real_x, z in zip(real, noise):
                loss.accumulate_gradients(phase=phase.name, real=real_x, z=z, gain=phase.interval)
            phase.module.requires_grad_(False)
            phase.opt.step()
