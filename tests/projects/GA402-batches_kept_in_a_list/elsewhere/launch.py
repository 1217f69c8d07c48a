from types import SimpleNamespace

import torch
from train import train

torch.manual_seed(0)
train(SimpleNamespace(path="", batch_size=8, epochs=2, gradient_accumulation_steps=4))
