import tempfile

import torch
import torch.distributed as dist
from trainer import Trainer


class Task(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Linear(3, 1)

    def forward(self, batch, which):
        x, y = batch
        return torch.nn.functional.mse_loss(self.net(x), y)

    def configure_optimizers(self):
        return [torch.optim.SGD(self.net.parameters(), lr=0.1, momentum=0.9)]


torch.manual_seed(0)
dist.init_process_group("gloo", init_method=f"file://{tempfile.mktemp()}", rank=0, world_size=1)
batches = [(torch.randn(2, 3), torch.randn(2, 1)) for _ in range(8)]
Trainer(Task(), 4, True).fit(batches, 8)
dist.destroy_process_group()
