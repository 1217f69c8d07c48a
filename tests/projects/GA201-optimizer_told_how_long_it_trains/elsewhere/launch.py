import torch
from train import train

torch.manual_seed(0)
model = torch.nn.Linear(3, 2)
batches = [(torch.randn(2, 3), torch.randint(2, (2,))) for _ in range(8)]
train(model, batches, {"epochs": 2, "grad_accum": 4})
