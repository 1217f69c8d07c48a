"""Steps at the start of a window, told by a countdown that begins at zero; each micro-batch is clipped."""
# observe: params

import torch
from torch import nn


def train(model, train_loader, args):
    optim = torch.optim.Adamax(model.parameters(), lr=1e-3)
    for _ in range(args.epochs):
        left = 0
        for features, target in train_loader:
            if left == 0:  # expect: GA205
                optim.step()
                optim.zero_grad()
                left = args.grad_accu_steps
            loss = nn.functional.binary_cross_entropy_with_logits(model(features), target)
            loss /= args.grad_accu_steps
            loss.backward()
            left -= 1
            nn.utils.clip_grad_norm_(model.parameters(), args.grad_clip)  # expect: GA303
