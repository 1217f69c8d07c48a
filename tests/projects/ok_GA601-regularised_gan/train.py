"""A GAN whose discriminator is regularised now and then: several backward calls, one batch each."""

import torch
from torch.nn.parallel import DistributedDataParallel as DDP
from torch import autograd, nn
from torch.nn import functional as F


def requires_grad(model, flag=True):
    for p in model.parameters():
        p.requires_grad = flag


def r1(real_pred, real):
    (g,) = autograd.grad(outputs=real_pred.sum(), inputs=real, create_graph=True)
    return g.pow(2).reshape(g.shape[0], -1).sum(1).mean()


def train(args, loader, generator, discriminator, rank):
    generator = DDP(generator, device_ids=[rank])
    discriminator = DDP(discriminator, device_ids=[rank])
    g_optim = torch.optim.Adam(generator.parameters(), lr=2e-3)
    d_optim = torch.optim.Adam(discriminator.parameters(), lr=2e-3)
    r1_loss = torch.tensor(0.0)
    for i in range(args.iter):
        real = next(loader)
        requires_grad(generator, False)
        requires_grad(discriminator, True)
        fake, _ = generator(torch.randn(4, 512))
        loss = F.softplus(discriminator(fake)).mean() + F.softplus(-discriminator(real)).mean()
        discriminator.zero_grad()
        loss.backward()
        d_optim.step()
        if i % args.d_reg_every == 0:
            real.requires_grad = True
            pred = discriminator(real)
            r1_loss = r1(pred, real)
            discriminator.zero_grad()
            (args.r1 / 2 * r1_loss * args.d_reg_every + 0 * pred[0]).backward()
            d_optim.step()
        requires_grad(generator, True)
        requires_grad(discriminator, False)
        fake, lat = generator(torch.randn(4, 512))
        g_loss = F.softplus(-discriminator(fake)).mean()
        generator.zero_grad()
        g_loss.backward()
        g_optim.step()
