"""A flag says whether N, which is named beside it, counts: the default of the flag is no reason to see no windows."""
# observe: params

import torch


def fit(net, optimizer, queue, config):
    accumulates = False
    if config["accumulation"] > 0:
        accumulates = True
        accumulation_steps = config["accumulation"]
    held = 0
    while True:
        batch = queue.get()
        if batch is None:
            break
        inputs, targets = batch
        loss = torch.nn.functional.mse_loss(net(inputs), targets)
        loss.backward()  # expect: GA201
        if accumulates:
            held += 1
            if held == accumulation_steps:
                held = 0
                optimizer.step()
                optimizer.zero_grad()
        else:
            optimizer.step()
            optimizer.zero_grad()
