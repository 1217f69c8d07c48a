import torch
from torch import nn
from train import fit, fit_late


class Source:
    def __init__(self, count):
        self.batches = iter([(torch.randn(4, 8), torch.randn(4, 8)) for _ in range(count)])

    def next(self):
        return next(self.batches, (None, None))


torch.manual_seed(0)
fit(nn.Linear(8, 8), Source(8), 4)
fit_late(nn.Linear(8, 8), Source(9), 4)
