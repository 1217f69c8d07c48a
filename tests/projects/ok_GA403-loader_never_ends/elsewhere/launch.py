from types import SimpleNamespace

import torch
from data import build, loaders
from train import main

torch.manual_seed(0)
main(SimpleNamespace(gradient_accumulation_steps=4, num_train_steps=6), build(), loaders())
