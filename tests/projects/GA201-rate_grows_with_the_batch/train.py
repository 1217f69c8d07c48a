"""N is what two numbers of settings divide to, and the first learning rate of a table is scaled with it."""
# observe: params

import torch
from torch import nn


def fit(net, batches, table, args):
    every = int(args.total_batch / args.micro_batch)
    table["lr0"] *= args.micro_batch * every / 64
    optimizer = torch.optim.SGD(net.parameters(), lr=table["lr0"])
    for index, (inputs, wanted) in enumerate(batches):
        loss = nn.functional.mse_loss(net(inputs), wanted)
        loss.backward()  # expect: GA201
        if (index + 1) % every == 0 or index + 1 == len(batches):
            optimizer.step()
            optimizer.zero_grad()
