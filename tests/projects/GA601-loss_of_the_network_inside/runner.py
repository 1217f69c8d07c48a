"""The points go through the wrapper; the loss is a method of the network inside, given what came out."""
# observe: allreduces

from torch.nn.parallel import DistributedDataParallel


def run(settings, network, optimizer, clouds):
    if settings.distributed:
        network = DistributedDataParallel(network)
    network.zero_grad()
    for number in range(1, settings.updates * settings.each + 1):
        cloud, kind = next(clouds)
        found = network(cloud)
        loss, _ = network.module.loss_and_hits(found, kind)
        (loss / settings.each).backward()  # expect: GA601
        if number % settings.each == 0:
            optimizer.step()
            network.zero_grad()
