"""The critic gathers several batches into a step; the generator's passes go through it meanwhile and leave gradients in it.

That optimizers take only what is trainable, and that a penalty asks for the gradient of images, freezes nothing.
"""

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def penalty(critic, real, fake):
    mixed = (real + (fake - real) * torch.rand(len(real), 1)).requires_grad_(True)
    (slope,) = torch.autograd.grad(outputs=critic(mixed).sum(), inputs=mixed, create_graph=True)
    return ((slope.norm(dim=1) - 1) ** 2).mean()


def fit_epoch(options, generator: nn.Module, critic: nn.Module, generating, criticising, batches, state):
    criticising.zero_grad()
    generating.zero_grad()
    for number, real in enumerate(batches):
        fake = generator(torch.randn(len(real), options.noise)).detach()
        loss = critic(fake).mean() - critic(real).mean() + 10 * penalty(critic, real, fake)
        (loss / options.gathered).backward()  # expect: GA601 "4 of 4"
        if (number + 1) % options.gathered == 0:
            criticising.step()
            criticising.zero_grad()
        if state["turn"] % (options.turns * options.gathered) == 0:
            for _ in range(options.passes):
                score = critic(generator(torch.randn(8, options.noise)))
                (-score.mean() / options.passes).backward()  # expect: GA107, GA601 "4 of 4"
            generating.step()
            generating.zero_grad()
        state["turn"] += 1


def fit(options, batches):
    generator = DistributedDataParallel(nn.Linear(options.noise, 64))
    critic = DistributedDataParallel(nn.Linear(64, 1))
    generating = torch.optim.SGD(filter(lambda p: p.requires_grad, generator.parameters()), lr=0.01)
    criticising = torch.optim.SGD(filter(lambda p: p.requires_grad, critic.parameters()), lr=0.01)
    for _ in range(options.epochs):
        fit_epoch(options, generator, critic, generating, criticising, batches, {"turn": 0})
