"""The data sets are chosen by names that only the launcher knows; without any the program stops."""
# observe: params

import torch
from sets import Folder, Noise
from torch import nn


def choose(kinds="json"):
    found = []
    for kind in [Folder, Noise]:
        for wanted in kinds:
            if wanted == kind.name():
                found.append(kind())
    if len(found) > 0:
        return found
    else:
        raise ValueError("no such data")


def main(accumulation, kinds="json"):
    data = choose(kinds)[0]
    torch.manual_seed(0)
    model = nn.Linear(6, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    for step in range(3 * accumulation):
        x = data.draw()
        loss = nn.functional.cross_entropy(model(x), x[:, :3].argmax(dim=1))
        loss.backward()  # expect: GA201
        if (step + 1) % accumulation == 0:
            optimizer.step()
            optimizer.zero_grad()
