from contextlib import nullcontext
from types import SimpleNamespace

import torch
from codec import one_pass
from torch import nn

torch.manual_seed(0)


class Helper:
    def __init__(self):
        self.scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)

    def autocast(self):
        return nullcontext()

    def backward(self, loss):
        self.scaler.scale(loss).backward()

    def step(self, optimizer):
        self.scaler.step(optimizer)

    def update(self):
        self.scaler.update()


voice = nn.Linear(6, 6)
steps = torch.optim.SGD(voice.parameters(), lr=0.05, momentum=0.9)
held = SimpleNamespace(voice=voice, optimizer=steps, rates=torch.optim.lr_scheduler.StepLR(steps, 3))
helper = Helper()
for _ in range(6):
    one_pass(held, torch.randn(8, 6), helper)
