from types import SimpleNamespace

import numpy
import torch
from torch import nn
from train import train

torch.manual_seed(0)
tokens = numpy.random.default_rng(0).integers(0, 9, 400)
network = nn.Sequential(nn.Embedding(9, 6), nn.Linear(6, 9))
train(network, tokens, SimpleNamespace(length=5, updates=3, gather=4))
