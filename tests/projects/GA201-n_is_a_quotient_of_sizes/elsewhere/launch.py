from argparse import Namespace

import torch
from train import train

torch.manual_seed(0)
model = torch.nn.Linear(3, 1)
loader = [(torch.randn(2, 3), torch.randn(2, 1)) for _ in range(8)]
opt = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
train(model, loader, opt, Namespace(batch_size=8, micro_batch_size=2))
