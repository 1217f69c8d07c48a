"""`index and …` spares the first micro-batch the step, and with it the first window gets one more than N."""
# observe: params

import torch
from torch import nn


def fit(net, batches, every):
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for index, (inputs, wanted) in enumerate(batches):
        loss = nn.functional.mse_loss(net(inputs), wanted) / every
        loss.backward()
        if index and index % every == 0:  # expect: GA401
            optimizer.step()
            optimizer.zero_grad()
