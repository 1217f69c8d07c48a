"""Two loops of one script, the first over more steps than a run shows, the second with the windows."""
# observe: params

import torch
from torch import nn
from torch.nn.functional import mse_loss

torch.manual_seed(0)
start = nn.Linear(6, 2)
warm = torch.optim.SGD(start.parameters(), lr=0.05)
for _ in range(300):
    inputs, targets = torch.randn(4, 6), torch.randn(4, 2)
    warm.zero_grad()
    mse_loss(start(inputs), targets).backward()
    warm.step()

network = nn.Linear(6, 2)
optimizer = torch.optim.SGD(network.parameters(), lr=0.05)
batches = [(torch.randn(4, 6), torch.randn(4, 2)) for _ in range(80)]
for number, (inputs, targets) in enumerate(batches, 1):
    loss = mse_loss(network(inputs), targets)
    loss.backward()  # expect: GA201
    if number % 4 == 0:
        optimizer.step()
        optimizer.zero_grad()
