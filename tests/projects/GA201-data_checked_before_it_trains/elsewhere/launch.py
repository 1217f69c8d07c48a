from types import SimpleNamespace

import torch
from train import train

torch.manual_seed(0)
train(SimpleNamespace(path="", template=None, updates=3, accum=4))
