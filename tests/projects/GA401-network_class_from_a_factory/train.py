"""A factory of another package gives the network's class, called with the settings; a cache tells the width."""
# observe: params

import torch
from factories import build_optimizer, load_model, remember
from torch import nn

cache = {}


class Trainer:
    def __init__(self, cfg, logger):
        self.cfg = cfg
        self.net = self.get_model(logger)
        self.optimizer = build_optimizer(cfg, self.net, logger)

    def get_model(self, logger):
        model = load_model(self.cfg["name"])
        net = model(self.cfg, logger)
        net.train(True)
        return net

    def train(self, loader):
        remember(cache, self.cfg)
        width = next(iter(cache.values()))
        for _ in range(self.cfg["epochs"]):
            for step, (x, y) in enumerate(loader):
                loss = nn.functional.mse_loss(self.net(x[:, :width]), y) / self.cfg["accumulate"]
                loss.backward()
                if step % self.cfg["accumulate"] == 0:  # expect: GA401
                    self.optimizer.step()
                    self.optimizer.zero_grad()


def main(cfg, loader):
    Trainer(cfg, []).train(loader)
