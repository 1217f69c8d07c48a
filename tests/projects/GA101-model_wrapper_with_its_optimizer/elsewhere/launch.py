from types import SimpleNamespace

import torch
from torch import nn
from wrapper import Wrapper

torch.manual_seed(0)
wrapper = Wrapper(SimpleNamespace(lr=0.01, gradient_accumulation_steps=4), nn.Linear(6, 2))
for _ in range(12):
    x = torch.randn(8, 6)
    wrapper.step((x, x[:, :2].exp()))
