import torch


class Optimizer2State(torch.optim.Optimizer):
    def __init__(self, name, params, lr):
        super().__init__(params, {"lr": lr})

    def update_step(self, group, weight):
        if weight.grad is not None:
            held = self.state[weight].setdefault("momentum", torch.zeros_like(weight))
            weight -= group["lr"] * held.mul_(0.9).add_(weight.grad)
