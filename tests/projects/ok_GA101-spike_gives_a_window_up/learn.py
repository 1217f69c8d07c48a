"""A window whose loss leaps above its running mean is thrown away as a whole."""

import torch


def learn(net, batches, optimizer, updates, accum, bound):
    usual = 0.0
    total = torch.tensor(0.0)
    optimizer.zero_grad()
    for index in range(updates * accum):
        batch = next(batches)
        loss = torch.nn.functional.mse_loss(net(batch), batch[:, :2])
        (loss / accum).backward()
        total += loss.detach()
        if (index + 1) % accum == 0:
            mean = (total / accum).item()
            total.zero_()
            spike = False
            if usual > 0 and bound > 0:
                if mean > usual * bound:
                    spike = True
                    optimizer.zero_grad()
            if not spike:
                optimizer.step()
                optimizer.zero_grad()
            if usual == 0:
                usual = mean
            else:
                usual = 0.9 * usual + 0.1 * mean
