from argparse import Namespace

import torch
from train import train

torch.manual_seed(0)
batches = [(torch.randn(2, 3), torch.randn(2, 1)) for _ in range(6)]
train(Namespace(epochs=2, accumulate=4), torch.nn.Linear(3, 1), batches)
