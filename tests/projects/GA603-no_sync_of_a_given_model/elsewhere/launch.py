import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from trainer import Trainer


class WithLoss(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(6, 2)

    def forward(self, x):
        return nn.functional.mse_loss(self.layer(x), x[:, :2].cos())


dist.init_process_group("gloo")
torch.manual_seed(0)
model = DistributedDataParallel(WithLoss())
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
Trainer(4, use_ddp=True).train_epoch(model, optimizer, [torch.randn(8, 6) for _ in range(12)])
dist.destroy_process_group()
