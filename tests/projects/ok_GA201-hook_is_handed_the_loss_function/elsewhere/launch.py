import torch
from torch import nn
from train import Engine


class Plain(Engine):
    def pass_over(self, part, total, loss_function):
        return loss_function(self.net(part), part, total), {}


def squares(out, part, total):
    return nn.functional.mse_loss(out, part, reduction="sum") / total


if __name__ == "__main__":
    engine = Plain(nn.Linear(5, 5), lambda batch: batch.split(4))
    for _ in range(3):
        engine.update(torch.randn(12, 5), squares)
