from types import SimpleNamespace

import torch
import torch.distributed as dist
from runner import run
from torch import nn


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(6, 3)

    def forward(self, cloud):
        return self.layer(cloud)

    def loss_and_hits(self, found, kind):
        return nn.functional.cross_entropy(found, kind), (found.argmax(1) == kind).float().mean()


dist.init_process_group("gloo")
torch.manual_seed(0)
network = Classifier()
optimizer = torch.optim.SGD(network.parameters(), lr=0.05, momentum=0.9)
clouds = ((torch.randn(8, 6), torch.randint(3, (8,))) for _ in range(12))
run(SimpleNamespace(distributed=True, updates=3, each=4), network, optimizer, clouds)
dist.destroy_process_group()
