import torch
from contest import gathers_for_the_judge, gathers_for_the_painter

torch.manual_seed(0)
gathers_for_the_judge([torch.randn(8, 6) + 1 for _ in range(16)], 4)
gathers_for_the_painter([torch.randn(8, 6) + 1 for _ in range(16)], 4)
