"""A GAN of two DeepSpeed engines that step for each batch: there is no large batch whose statistics could differ."""

import deepspeed
import torch
from nets import Critic, Painter
from torch import nn


def train(args, dataloader, nz):
    net_g, net_d = Painter(nz), Critic()
    criterion = nn.BCELoss()
    opt_d = torch.optim.Adam(net_d.parameters(), lr=args.lr)
    opt_g = torch.optim.Adam(net_g.parameters(), lr=args.lr)
    engine_d, opt_d, _, _ = deepspeed.initialize(args=args, model=net_d, optimizer=opt_d)
    engine_g, opt_g, _, _ = deepspeed.initialize(args=args, model=net_g, optimizer=opt_g)
    for _ in range(args.epochs):
        for data in dataloader:
            net_d.zero_grad()
            real = data[0]
            ones = torch.ones(real.size(0))
            err_real = criterion(net_d(real), ones)
            engine_d.backward(err_real)
            fake = net_g(torch.randn(real.size(0), nz, 1, 1))
            err_fake = criterion(net_d(fake.detach()), 1 - ones)
            engine_d.backward(err_fake)
            engine_d.step()
            net_g.zero_grad()
            err_g = criterion(net_d(fake), ones)
            engine_g.backward(err_g)
            engine_g.step()
