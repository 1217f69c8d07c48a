import torch
from train import each_batch

torch.manual_seed(0)
each_batch(torch.nn.Linear(3, 1), [(torch.randn(2, 3), torch.randn(2, 1)) for _ in range(6)])
