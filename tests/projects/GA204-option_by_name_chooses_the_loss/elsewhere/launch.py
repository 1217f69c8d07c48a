import torch
from torch import nn
from train import main

torch.manual_seed(0)
main(nn.Linear(6, 3), [(torch.randn(4, 6), torch.randint(0, 3, (4,))) for _ in range(8)], ["--kind", "smooth"])
