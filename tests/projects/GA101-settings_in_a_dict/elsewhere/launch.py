import torch
from torch import nn
from train import Tagger

torch.manual_seed(0)
batches = [(torch.randn(4, 6), torch.randint(0, 3, (4,))) for _ in range(8)]
Tagger(nn.Linear(6, 3), {"accumulation_steps": 4}).fit(batches)
