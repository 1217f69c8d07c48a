"""A state is handed on from one micro-batch of the window to the next, whose number is called what it is."""
# observe: params

import torch


def train(network, optimizer, batches, accumulation):
    memory = torch.zeros(5, 4, dtype=torch.float64)
    stream = iter(batches)
    for _ in range(len(batches) // accumulation):
        optimizer.zero_grad()
        for _ in range(accumulation):
            batch = next(stream)
            out, memory = network(batch, memory)
            torch.nn.functional.mse_loss(out, batch).backward()  # expect: GA201
            memory = memory.detach()
        optimizer.step()
