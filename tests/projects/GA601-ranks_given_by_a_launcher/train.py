"""Alone the file trains on one device: the number of ranks comes from a launcher that knows nothing of gradients."""
# observe: allreduces

import torch
from torch.nn.parallel import DistributedDataParallel


def train(net, batches, accum, rank=None, world_size=None):
    spread = True if world_size else False
    model = DistributedDataParallel(net) if spread else net
    if spread:
        print("rank", rank)
    opt = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    for i, (x, y) in enumerate(batches):
        loss = torch.nn.functional.mse_loss(model(x), y) / accum
        loss.backward()  # expect: GA601
        if (i + 1) % accum == 0 or i + 1 == len(batches):  # expect: GA205
            opt.step()
            opt.zero_grad()


if __name__ == "__main__":
    train(torch.nn.Linear(3, 1), torch.load("batches.pt"), 4)
