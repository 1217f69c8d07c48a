"""The points go through the wrapper, and all-reduce once a window; the loss is a method of the network inside."""

from contextlib import nullcontext

from torch.nn.parallel import DistributedDataParallel


def run(settings, network, optimizer, clouds):
    if settings.distributed:
        network = DistributedDataParallel(network)
    gathered = 0
    network.zero_grad()
    for number, (cloud, kind) in enumerate(clouds, 1):
        last = gathered == settings.each - 1 or number == len(clouds)
        with nullcontext() if last else network.no_sync():
            found = network(cloud)
            network.module.loss(found, kind).backward()
        gathered += 1
        if last:
            for parameter in network.parameters():
                parameter.grad /= gathered
            optimizer.step()
            network.zero_grad()
            gathered = 0
