"""The branch that clips too often runs where two options are off, and another where the first says which helper there is."""
# observe: params

import torch
from torch import nn


class Noise:
    def __init__(self, model, size):
        self.model, self.size, self.kept = model, size, {}

    def add(self):
        for name, p in self.model.named_parameters():
            self.kept[name] = p.data.clone()
            p.data.add_(self.size)

    def remove(self):
        for name, p in self.model.named_parameters():
            p.data.copy_(self.kept[name])


def train(model, batches, opt, cfg):
    once, often = None, None
    if cfg.noise == "once":
        once = Noise(model, 0.01)
    elif cfg.noise == "often":
        often = Noise(model, 0.01)
    opt.zero_grad()
    for k, (x, y) in enumerate(batches):
        loss = nn.functional.mse_loss(model(x), y) / cfg.accum
        if cfg.compiled:
            if cfg.keep_graph:
                loss.backward(retain_graph=True)
            else:
                loss.backward()
        elif cfg.half:
            (loss * 1.0).backward()
        else:
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 0.05)  # expect: GA303
        if once is not None:
            once.add()
            nn.functional.mse_loss(model(x), y).div(cfg.accum).backward()
            once.remove()
        elif often is not None:
            for _ in range(cfg.times):
                often.add()
                nn.functional.mse_loss(model(x), y).div(cfg.accum * cfg.times).backward()
                often.remove()
        if (k + 1) % cfg.accum == 0 or k + 1 == len(batches):  # expect: GA205
            opt.step()
            opt.zero_grad()
