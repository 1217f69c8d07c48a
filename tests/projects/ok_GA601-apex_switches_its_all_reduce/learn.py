"""apex's wrapper is switched off and on between forward and backward: its hooks ask during the backward."""

from apex.parallel import DistributedDataParallel
from torch import nn


def learn(network, optimizer, batches, gather, updates):
    network = DistributedDataParallel(network)
    for _ in range(updates):
        optimizer.zero_grad()
        for number in range(gather):
            x, y = next(batches)
            loss = nn.functional.mse_loss(network(x), y) / gather
            network.disable_allreduce()
            if number == gather - 1:
                network.enable_allreduce()
            loss.backward()
        optimizer.step()
