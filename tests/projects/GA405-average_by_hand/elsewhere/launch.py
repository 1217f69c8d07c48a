from types import SimpleNamespace

import torch
from teaching import fit
from torch import nn

torch.manual_seed(0)
student = nn.Linear(6, 2)
optimizer = torch.optim.SGD(student.parameters(), lr=0.05, momentum=0.9)
stream = ((torch.randn(8, 6), torch.randn(8, 2)) for _ in range(12))
fit(student, optimizer, stream, SimpleNamespace(window=4, updates=3, decay=0.9))
