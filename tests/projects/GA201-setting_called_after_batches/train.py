"""`accumulate_grad_batches` is a number and no loader; what is registered with an optimizer leaves the gradients alone."""
# observe: params

import torch


class Counter:
    def __init__(self, optimizer):
        self.count = 0
        self.handle = optimizer.register_step_pre_hook(self.note)

    def note(self, optimizer, args, kwargs):
        self.count += 1


def fit(net, optimizer, batches, config, start=0):
    pieces = config.trainer.accumulate_grad_batches
    counter = Counter(optimizer)
    seen = 0
    for index, (inputs, targets) in enumerate(batches):
        seen += 1
        update = index // pieces + 1
        if update < start % len(batches):
            continue
        waits = seen % pieces != 0
        torch.nn.functional.mse_loss(net(inputs), targets).backward()  # expect: GA201
        if waits:
            continue
        optimizer.step()
        optimizer.zero_grad()
        print(update, counter.count)
