"""One choice of optimizer steps each parameter by a hook; the loop, which another choice steps, divides by N all the same."""
# observe: params

import torch
from quantised import Quantised


def fit(options, net, batches):
    by_layer = False
    if options.optimizer == "sgd":
        optimizer = torch.optim.SGD(net.parameters(), lr=options.lr)
    elif options.optimizer == "sgd_by_layer":
        held = {}
        for weight in net.parameters():
            if weight.requires_grad:
                held[weight] = Quantised([weight], lr=options.lr)

        def apply(weight):
            if weight.grad is None:
                return
            held[weight].step()
            held[weight].zero_grad()

        for weight in net.parameters():
            if weight.requires_grad:
                weight.register_post_accumulate_grad_hook(apply)  # expect: GA105
        by_layer = True
    seen = 0
    for x, y in batches:
        seen += 1
        loss = torch.nn.functional.mse_loss(net(x), y) / options.window
        loss.backward()
        if seen % options.window != 0:
            continue
        if not by_layer:
            optimizer.step()
            optimizer.zero_grad()
