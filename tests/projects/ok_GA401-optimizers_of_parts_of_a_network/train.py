"""Each optimizer has its part of one network's parameters, by their names; the second trains from some step on."""

import torch
from halves.parts import Both, Scheduled
from torch import nn


def update(net, optimizer, loss, count, accum):
    (loss / accum).backward()
    if count % accum == 0:
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step_and_update_lr()
        optimizer.zero_grad()


def main(batches, accum=4, warm_up=8):
    net = Both()
    first = Scheduled([p for name, p in net.named_parameters() if "judge" not in name])
    second = Scheduled([p for name, p in net.named_parameters() if "judge" in name])
    count = 1
    for batch in batches:
        update(net, first, net(batch), count, accum)
        if count > warm_up:
            update(net, second, net.judged(batch), count, accum)
        count += 1


if __name__ == "__main__":
    main([torch.randn(8, 6) for _ in range(24)])
