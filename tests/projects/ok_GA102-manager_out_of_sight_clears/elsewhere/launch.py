import torch
from train import Loop

torch.manual_seed(0)
Loop(torch.nn.Linear(6, 4), 4).run(iter([torch.randn(5, 6) for _ in range(12)]))
