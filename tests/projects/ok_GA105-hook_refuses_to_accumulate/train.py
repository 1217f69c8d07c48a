"""A hook that steps each parameter is refused together with accumulation, so the loss is divided by one there."""

import torch


def fit(options, net, batches):
    if options.fused:
        if options.window > 1:
            raise ValueError("a step in the backward leaves nothing to accumulate")
        held = {weight: torch.optim.SGD([weight], lr=options.lr) for weight in net.parameters()}

        def apply(weight):
            held[weight].step()
            held[weight].zero_grad()

        for weight in net.parameters():
            weight.register_post_accumulate_grad_hook(apply)
    else:
        optimizer = torch.optim.SGD(net.parameters(), lr=options.lr)
    for number, (x, y) in enumerate(batches, start=1):
        loss = torch.nn.functional.mse_loss(net(x), y) / options.window
        loss.backward()
        if number % options.window == 0 and not options.fused:
            optimizer.step()
            optimizer.zero_grad()
