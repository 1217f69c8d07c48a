"""The teacher follows the student after every batch, by hand, though the student moves once a window."""
# observe: none

import copy

import torch
from torch.nn.functional import mse_loss


def fit(student, optimizer, stream, options):
    teacher = copy.deepcopy(student)
    for number in range(1, options.updates * options.window + 1):
        x, _ = next(stream)
        with torch.no_grad():
            wanted = teacher(x + 0.01)
        (mse_loss(student(x), wanted) / options.window).backward()
        if number % options.window == 0:
            optimizer.step()
            optimizer.zero_grad()
        with torch.no_grad():
            for kept, new in zip(teacher.parameters(), student.parameters()):  # expect: GA405 "4 times"
                kept.data = kept.data * options.decay + new.detach().data * (1 - options.decay)


class Average:
    def __init__(self, network, decay):
        self.kept, self.decay = copy.deepcopy(network), decay

    def follow(self, network):
        for kept, new in zip(self.kept.parameters(), network.parameters()):
            kept.data.mul_(self.decay).add_(new.data, alpha=1 - self.decay)


def fit_with_average(network, optimizer, stream, options):
    average = Average(network, options.decay)
    for number in range(1, options.updates * options.window + 1):
        x, y = next(stream)
        (mse_loss(network(x), y) / options.window).backward()
        if number % options.window == 0:
            optimizer.step()
            optimizer.zero_grad()
            average.follow(network)
