from types import SimpleNamespace

import torch
from torch import nn
from trainer import main

torch.manual_seed(0)
main(
    SimpleNamespace(folder="nowhere", source="a/b", batch_size=8, accum=4, max_steps=5, epochs=1),
    nn.Linear(6, 2),
)
