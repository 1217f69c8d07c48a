import torch
from learner import Learner
from torch import nn

torch.manual_seed(0)
pages = [(torch.randn(8, 6), torch.randn(8, 2)) for _ in range(12)]
learner = Learner({"gather": 4}, nn.Linear(6, 2), pages)
for number in range(1, len(pages) + 1):
    learner.one_pass(number)
