from argparse import Namespace

import torch
from train import train

torch.manual_seed(0)
model = torch.nn.Linear(3, 1)
batches = [(torch.randn(2, 3), torch.randn(2, 1)) for _ in range(6)]
opt = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
rows = [torch.randn(3, 3)]
train(model, batches, opt, rows, Namespace(epochs=2, accum=4, longest=2))
