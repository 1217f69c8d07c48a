import torch
from torch import nn
from train import main

torch.manual_seed(0)
inputs = [torch.randn(8, 4) for _ in range(8)]
main(lambda path: [(x, x[:, :2].exp()) for x in inputs], nn.MSELoss(), {"names": ["a", "b"], "train": "train"})
