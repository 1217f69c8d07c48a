from types import SimpleNamespace

import torch
import torch.distributed as dist
from torch import nn
from train import Distiller


class Student(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(6, 2)

    def forward(self, batch):
        return {"logits": self.layer(batch["x"])}


dist.init_process_group("gloo")
torch.manual_seed(0)
inputs = [torch.randn(8, 6) for _ in range(12)]
student = Student()
config = SimpleNamespace(gradient_accumulation_steps=4, local_rank=0, weight=1.0)
distiller = Distiller(config, student)
distiller.train(torch.optim.AdamW(student.parameters()), [{"x": x, "y": x[:, :2].exp()} for x in inputs], 3)
dist.destroy_process_group()
