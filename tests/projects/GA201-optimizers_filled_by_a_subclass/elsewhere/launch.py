from types import SimpleNamespace

import torch
from runner import Runner
from torch import nn


class Own(Runner):
    def prepare(self, net):
        self.optimizers["sgd"] = torch.optim.SGD(net.parameters(), lr=0.1)


torch.manual_seed(0)
net = nn.Linear(6, 2)
own = Own(SimpleNamespace(accum=4))
own.prepare(net)
own.train(net, [torch.randn(8, 6) for _ in range(16)])
