import torch
from train import train


class Pair(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.judge = torch.nn.Linear(3, 3), torch.nn.Linear(3, 1)

    def loss(self, batch, which):
        said = self.judge(self.body(batch) if which == 0 else batch)
        return said.square().mean() if which == 0 else (said - 1).square().mean()


torch.manual_seed(0)
train(Pair(), [torch.randn(2, 3) for _ in range(4)])
