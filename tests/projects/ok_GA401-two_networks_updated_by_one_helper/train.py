"""Both networks of an adversarial training accumulate in one helper; the second loss reaches the first network too."""

import torch
from torch import nn


def main(net, critic, batches, accum):
    opt_net = torch.optim.SGD(net.parameters(), lr=0.1)
    opt_critic = torch.optim.SGD(critic.parameters(), lr=0.1)

    def update(model, step, loss, optimizer):
        (loss / accum).backward()
        if step % accum == 0:
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()

    step = 1
    while True:
        for batch in batches:
            made = net(batch)
            update(critic, step, nn.functional.softplus(critic(made.detach())).mean(), opt_critic)
            made = net(batch)
            update(net, step, nn.functional.softplus(-critic(made)).mean(), opt_net)
            if step == 16:
                return
            step += 1


if __name__ == "__main__":
    main(nn.Linear(6, 2), nn.Linear(2, 1), [torch.randn(8, 6) for _ in range(8)], 4)
