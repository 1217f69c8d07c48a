"""The training ends after so many updates, worked out from settings that nobody has seen."""
# observe: params

import math

from keeping import Keeper
from torch.nn.functional import mse_loss


def train(options, network, optimizer, stream):
    keeper = Keeper(options, network, optimizer)
    updates = keeper.updates
    examples = len(stream.examples) * options.copies
    total = int(math.ceil(1.0 * options.rounds * examples / (options.ranks * options.size * options.gather)))
    optimizer.zero_grad()
    if updates == 0:
        optimizer.step()  # makes its state, and moves nothing
    for number, (x, y) in enumerate(stream):
        loss = mse_loss(network(x), y)
        loss.backward()  # expect: GA201
        if (number + 1) % options.gather == 0:
            updates += 1
            optimizer.step()
            optimizer.zero_grad()
            keeper.moved()
        if updates >= total:
            break
