import torch
from torch import nn


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(6, 2)

    def compute_loss(self, batch):
        return nn.functional.mse_loss(self.layer(batch), batch[:, :2].sin())


class Simulator:
    def run(self, policy):
        with torch.no_grad():
            return policy.layer(torch.ones(1, 6))


def build_model(cfg):
    return Policy()


def build_optimizer(cfg, params):
    return torch.optim.SGD(params, lr=cfg.lr, momentum=0.9)


def batches(cfg):
    return [torch.randn(8, 6) for _ in range(12)]


simulator = Simulator()
