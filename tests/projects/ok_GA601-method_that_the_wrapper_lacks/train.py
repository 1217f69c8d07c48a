"""DDP hands on no method of the network's: where one is called on the network itself, nothing was wrapped."""

from torch.nn.functional import mse_loss
from torch.nn.parallel import DistributedDataParallel


def train(network, optimizer, batches, options):
    if options.ranks > 1:
        network = DistributedDataParallel(network)
    optimizer.zero_grad()
    seen = 0
    for _ in range(options.rounds):
        for batch in batches:
            if options.alone:
                scores = network.score(batch["x"])
            else:
                scores = network.module.score(batch["x"])
            loss = mse_loss(scores, batch["y"]) / options.every
            loss.backward()
            seen += 1
            if seen % options.every == 0:
                optimizer.step()
                optimizer.zero_grad()
