import torch


class Adversary:
    def __init__(self, model):
        self.parameters = list(model.parameters())

    def backup_grad(self):
        self.kept = [p.grad.clone() for p in self.parameters]

    def restore_grad(self):
        for p, grad in zip(self.parameters, self.kept, strict=True):
            p.grad = grad

    def attack(self, first):
        if first:
            self.data = [p.detach().clone() for p in self.parameters]
        with torch.no_grad():
            for p in self.parameters:
                p.add_(0.01 * p.grad)

    def restore(self):
        with torch.no_grad():
            for p, data in zip(self.parameters, self.data, strict=True):
                p.copy_(data)
