from types import SimpleNamespace

import torch
from train import Summing, train

torch.manual_seed(0)
inputs = [torch.randn(16, 6) for _ in range(4)]
args = SimpleNamespace(gradient_accumulation_steps=4, optimizer_name="AdamW", max_norm=1e9)
network = Summing()
optimizer = torch.optim.AdamW(network.parameters())
train(network, optimizer, [{"x": x, "y": x[:, :2].exp()} for x in inputs], args)
