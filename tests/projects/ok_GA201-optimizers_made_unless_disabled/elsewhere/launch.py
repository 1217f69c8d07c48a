import torch
from torch import nn
from trainer import Optimizers


class Settings:
    every, lr, disable_encoder, disable_denoiser = 4, 0.01, False, False


torch.manual_seed(0)
encoder, denoiser = nn.Linear(8, 4), nn.Linear(4, 1)
optimizers = Optimizers(Settings(), encoder, denoiser)
for index, x in enumerate(torch.randn(12, 4, 8)):
    optimizers.step(denoiser(encoder(x)).square().mean() / Settings.every, index)
