import copy

import torch


class Average:
    def __init__(self, net, decay):
        self.kept, self.decay = copy.deepcopy(net), decay

    @torch.no_grad()
    def step(self, net):
        for kept, new in zip(self.kept.parameters(), net.parameters()):
            kept.lerp_(new, 1 - self.decay)


def build_average(settings, net):
    return Average(net, settings.decay)
