"""An adversary of another package sets the gradients aside, clears them for its own passes and puts them back before the last."""

from attacks import Adversary
from torch import nn


def train(model, loader, optimizer, args):
    adversary = Adversary(model)
    for _ in range(args.epochs):
        model.zero_grad()
        for step, (x, y) in enumerate(loader):
            loss = nn.functional.mse_loss(model(x), y) / args.accumulation
            loss.backward()
            adversary.backup_grad()
            for k in range(args.passes):
                adversary.attack(first=k == 0)
                if k != args.passes - 1:
                    model.zero_grad()
                else:
                    adversary.restore_grad()
                hostile = nn.functional.mse_loss(model(x), y) / args.accumulation
                hostile.backward()
            adversary.restore()
            if (step + 1) % args.accumulation == 0:
                optimizer.step()
                model.zero_grad()
