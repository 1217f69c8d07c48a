"""Batches of several sources take turns: one mode gathers a round of them into a step, the other modes step at each."""

from torch.nn.functional import mse_loss


def fit(options, network, stream, optimizer):
    for turn in range(options.rounds * options.sources):
        x, y = next(stream)
        loss = mse_loss(network(x), y)
        if options.mixing == "gather":
            loss = loss / options.sources
        loss.backward()
        if (options.mixing == "gather" and (turn + 1) % options.sources == 0) or options.mixing in ["turns", "draw"]:
            optimizer.step()
            optimizer.zero_grad()
