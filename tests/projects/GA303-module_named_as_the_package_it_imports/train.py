"""`utils/model.py` imports the package `model`, where the optimizer is wrapped; clipping runs for each micro-batch."""
# observe: params

import torch
from torch import nn
from utils.model import get_model

ACCUMULATION = 4


def main():
    torch.manual_seed(0)
    net, optimizer = get_model()
    step = 1
    for _ in range(3 * ACCUMULATION):
        x = torch.randn(8, 6)
        loss = nn.functional.mse_loss(net(x), 9 * x) / ACCUMULATION
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 0.1)  # expect: GA303
        if step % ACCUMULATION == 0:
            optimizer.step_and_update_rate()
            optimizer.zero_grad()
        step += 1


if __name__ == "__main__":
    main()
