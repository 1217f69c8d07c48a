from types import SimpleNamespace

import torch
from averaging import fit_evenly
from torch import nn
from torch.optim.swa_utils import AveragedModel

torch.manual_seed(0)
network = nn.Linear(6, 3)
average = AveragedModel(network)
average.update = average.update_parameters
optimizer = torch.optim.SGD(network.parameters(), lr=0.05, momentum=0.9)
batches = ((torch.randn(8, 6), torch.randint(3, (8,))) for _ in range(12))
settings = SimpleNamespace(window=4, updates=3, average_every=8)
fit_evenly(settings, network, average, batches, nn.CrossEntropyLoss(), optimizer)
