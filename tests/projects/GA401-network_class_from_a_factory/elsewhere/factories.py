import torch
from torch import nn


class Line(nn.Linear):
    def __init__(self, cfg, logger):
        super().__init__(cfg["width"], 1)
        logger.append("made")


def load_model(name):
    return {"line": Line}[name]


def build_optimizer(cfg, net, logger):
    logger.append("optimizer")
    return torch.optim.SGD(net.parameters(), lr=cfg["lr"])


def remember(cache, cfg):
    cache["width"] = cfg["width"]
