"""The counter is a variable of the module, and has the name that a loop of the evaluation gives its batches."""
# observe: params

import torch
from torch.nn.functional import mse_loss

from options import options


def score(model, held):
    total = 0.0
    for seen, (x, y) in enumerate(held):
        total += mse_loss(model(x), y).item()
    return total / (seen + 1)


model, loader, held = options.model, options.loader, options.held
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
for _ in range(options.epochs):
    seen = 0
    for x, y in loader:
        seen += 1
        loss = mse_loss(model(x), y) / options.every
        loss.backward()
        if (seen + 1) % options.every == 0:  # expect: GA401
            optimizer.step()
            optimizer.zero_grad()
    print(score(model, held))
