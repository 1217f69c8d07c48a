"""Both networks accumulate, and the discriminator is frozen while the generator learns."""

import torch


def set_requires_grad(net, flag):
    for p in net.parameters():
        p.requires_grad = flag


def train(G, D, loader, args):
    og = torch.optim.Adam(G.parameters(), 1e-4)
    od = torch.optim.Adam(D.parameters(), 1e-4)
    for i, x in enumerate(loader):
        set_requires_grad(D, True)
        f = G(torch.randn(8, 16))
        ld = (torch.relu(1 - D(x)) + torch.relu(1 + D(f.detach()))).mean() / args.accum
        ld.backward()
        if (i + 1) % args.accum == 0:
            od.step()
            od.zero_grad()
        set_requires_grad(D, False)
        lg = -D(G(torch.randn(8, 16))).mean() / args.accum
        lg.backward()
        if (i + 1) % args.accum == 0:
            og.step()
            og.zero_grad()


def train_by_method(G, D, loader, args):
    og = torch.optim.Adam(G.parameters(), 1e-4)
    od = torch.optim.Adam(D.parameters(), 1e-4)
    for i, x in enumerate(loader):
        D.requires_grad_(True)
        f = G(torch.randn(8, 16))
        ld = (torch.relu(1 - D(x)) + torch.relu(1 + D(f.detach()))).mean() / args.accum
        ld.backward()
        if (i + 1) % args.accum == 0:
            od.step()
            od.zero_grad()
        D.requires_grad_(False)
        lg = -D(G(torch.randn(8, 16))).mean() / args.accum
        lg.backward()
        if (i + 1) % args.accum == 0:
            og.step()
            og.zero_grad()
