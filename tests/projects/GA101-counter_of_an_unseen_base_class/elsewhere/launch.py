from types import SimpleNamespace

import torch
from prompts import Prompts
from torch import nn

torch.manual_seed(0)
loader = [(torch.randn(8, 6), torch.randn(8, 2)) for _ in range(9)]
net = nn.Linear(6, 2)
opt = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
Prompts(net, nn.MSELoss(), opt, SimpleNamespace(gather=4)).run(loader)
