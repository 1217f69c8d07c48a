import torch
from torch import nn
from train import training_loop

torch.manual_seed(0)
training_loop(
    {"G": nn.Linear(8, 4), "D": nn.Linear(4, 1)},
    {"class_name": "Loss", "rounds": 4},
    {"class_name": "SGD", "lr": 0.01},
    [torch.randn(16, 4) for _ in range(3)],
    batch=16,
    batch_gpu=4,
    steps=3,
)
