import torch


class EasyDict(dict):
    __getattr__ = dict.__getitem__


class Loss:
    def __init__(self, G, D, rounds):
        self.G, self.D, self.rounds = G, D, rounds

    def accumulate_gradients(self, phase, real, z, gain):
        if phase == "G":
            loss = torch.nn.functional.softplus(-self.D(self.G(z)))
        else:
            loss = torch.nn.functional.softplus(self.D(self.G(z).detach())) + torch.nn.functional.softplus(-self.D(real))
        loss.mean().mul(gain / self.rounds).backward()


def construct(class_name, **kwargs):
    return {"Loss": Loss, "SGD": torch.optim.SGD}[class_name](**kwargs)
