"""An optimizer of the project's own, on a base class of a package."""

import torch
from bitsandbytes.optim.optimizer import Optimizer2State


class Quantised(Optimizer2State):
    def __init__(self, params, lr=1e-3):
        super().__init__("momentum", params, lr)

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for weight in group["params"]:
                self.update_step(group, weight)
