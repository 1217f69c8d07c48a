"""Two optimizers of a network step at one guard, in one function always, in the other from some epoch on."""
# observe: params

import torch
from torch.nn.functional import mse_loss


def fit(model, loader, cfg):
    head = torch.optim.SGD(model.head.parameters(), lr=0.1)
    body = torch.optim.SGD(model.body.parameters(), lr=0.1)
    for epoch in range(cfg.epochs):
        for i, (x, y) in enumerate(loader):
            loss = mse_loss(model(x), y) / cfg.n
            loss.backward()
            if (i + 1) % cfg.n == 0:  # expect: GA402
                head.step()
                if epoch >= cfg.unfreeze:
                    body.step()
                head.zero_grad()
                body.zero_grad()


def fit_all(model, loader, cfg):
    head = torch.optim.SGD(model.head.parameters(), lr=0.1)
    body = torch.optim.SGD(model.body.parameters(), lr=0.1)
    for _ in range(cfg.epochs):
        for i, (x, y) in enumerate(loader):
            loss = mse_loss(model(x), y) / cfg.n
            loss.backward()
            if (i + 1) % cfg.n == 0:  # expect: GA402
                head.step()
                body.step()
                head.zero_grad()
                body.zero_grad()
