from types import SimpleNamespace

import torch
from torch import nn
from tutor import Tutor

torch.manual_seed(0)
lessons = [(torch.randn(4, 6), torch.randn(4, 2)) for _ in range(8)]
Tutor(nn.Linear(6, 2), SimpleNamespace(rate=0.05, gather=4, epochs=2)).teach(lessons)
