"""Whether there are ranks is asked once for the device and once for the wrapper, and each pass goes around the wrapper."""

# observe: ranks
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Scores(nn.Module):
    def __init__(self):
        super().__init__()
        self.score = nn.Linear(6, 1)

    def get_logits_loss(self, x):
        scores = self.score(x)  # expect: GA603
        return scores, scores.pow(2).mean()


def epoch_of(batches, gather):
    for number, x in enumerate(batches, start=1):
        _, loss = model.get_logits_loss(x) if not hasattr(model, "module") else model.module.get_logits_loss(x)
        (loss / gather).backward()
        if number % gather == 0:
            optimizer.step()
            optimizer.zero_grad()


if __name__ == "__main__":
    place = "cpu"
    if "RANK" in os.environ:
        dist.init_process_group("gloo")
    if dist.is_initialized():
        place = f"cpu:{0}"
    torch.manual_seed(0)
    model = Scores()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    if dist.is_initialized():
        model = DistributedDataParallel(model)
    torch.manual_seed(dist.get_rank() if dist.is_initialized() else 0)
    for _epoch in range(2):
        epoch_of([torch.randn(8, 6) for _ in range(8)], 4)
