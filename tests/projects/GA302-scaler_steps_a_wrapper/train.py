"""The scaler steps an object that holds the optimizer."""
# observe: params

import torch
from rates import Rising
from torch.nn.functional import mse_loss


def train(options, network, loader):
    rising = Rising(torch.optim.SGD(network.parameters(), lr=0.1, momentum=0.9), 8)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    for _ in range(options.epochs):
        for x, y in loader:
            rising.zero_grad()
            loss = mse_loss(network(x), y)
            scaler.scale(loss).backward()
            if options.longest > 0.0:
                torch.nn.utils.clip_grad_norm_(network.parameters(), options.longest)  # expect: GA302
            scaler.step(rising)
            scaler.update()
