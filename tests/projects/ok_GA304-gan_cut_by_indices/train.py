"""A vocoder GAN: the discriminator's target is cut out by indices that the generator returns."""
import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

from losses import disc_loss, gen_loss
from nets import Disc, Gen
from ops import cut


def fit(loader, hps, rank):
    net_g = DDP(Gen().cuda(rank), device_ids=[rank])
    net_d = DDP(Disc().cuda(rank), device_ids=[rank])
    optim_g = torch.optim.AdamW(net_g.parameters(), 1e-4)
    optim_d = torch.optim.AdamW(net_d.parameters(), 1e-4)
    scaler = torch.cuda.amp.GradScaler(enabled=hps.fp16)
    for epoch in range(hps.epochs):
        for batch_idx, (spec, y) in enumerate(loader):
            fake, ids = net_g(spec)
            y = cut(y, ids, 32)
            r, f = net_d(y, fake.detach())
            loss_d = disc_loss(r, f)
            optim_d.zero_grad()
            scaler.scale(loss_d).backward()
            scaler.unscale_(optim_d)
            scaler.step(optim_d)

            r, f = net_d(y, fake)
            loss_g = gen_loss(f) + hps.c_mel * nn.functional.l1_loss(fake, y)
            optim_g.zero_grad()
            scaler.scale(loss_g).backward()
            scaler.unscale_(optim_g)
            scaler.step(optim_g)
            scaler.update()
