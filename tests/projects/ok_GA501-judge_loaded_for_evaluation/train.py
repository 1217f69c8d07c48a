"""Pictures are drawn to please a judge whose BatchNorm keeps the statistics that it was loaded with."""

import torch
from judge import load
from torch import nn


class Scene(nn.Module):
    def __init__(self):
        super().__init__()
        self.judge = load()
        self.latents = nn.Linear(6, 6)

    def forward(self, noise):
        return -self.judge(self.latents(noise)).mean()


torch.manual_seed(0)
scene = Scene()
optimizer = torch.optim.SGD(scene.latents.parameters(), lr=0.05, momentum=0.9)
gradient_accumulate_every = 4
for _ in range(3):
    for _ in range(gradient_accumulate_every):
        loss = scene(torch.randn(8, 6)) / gradient_accumulate_every
        loss.backward()
    optimizer.step()
    optimizer.zero_grad()
