"""The epochs are as many as a number of steps asks for, of a loader over what was converted or kept in a file."""

# observe: params
import os

import torch
from convert import convert
from torch import nn
from torch.utils.data import DataLoader, SequentialSampler


def learn(settings, data, net):
    loader = DataLoader(data, sampler=SequentialSampler(data), batch_size=settings.batch_size)
    if settings.max_steps > 0:
        settings.epochs = settings.max_steps // (len(loader) // settings.accum) + 1
    else:
        print(len(loader) // settings.accum * settings.epochs, "steps")
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
    passes = iter(range(int(settings.epochs)))
    for _ in passes:
        for step, (batch,) in enumerate(loader):
            loss = nn.functional.mse_loss(net(batch), batch[:, :2] + 1) / settings.accum
            loss.backward()
            if (step + 1) % settings.accum == 0:  # expect: GA402
                optimizer.step()
                optimizer.zero_grad()


def samples(settings):
    name = os.path.join(settings.folder, list(filter(None, settings.source.split("/"))).pop())
    if os.path.exists(name):
        found = torch.load(name)
        mean, data = found["mean"], found["data"]
    else:
        mean, data = convert(settings.source)
        print(mean)
    return data


def main(settings, net):
    data = samples(settings)
    learn(settings, data, net)
