"""The scaler steps the optimizer, and the line after it does so once more with the same gradients."""
# observe: params

import torch
from torch import nn
from torch.nn.functional import mse_loss


def train(network, optimizer, scaler, batches, every):
    optimizer.zero_grad()
    for number, (inputs, targets) in enumerate(batches, start=1):
        loss = mse_loss(network(inputs), targets) / every
        scaler.scale(loss).backward()
        if number % every == 0:
            scaler.step(optimizer)
            optimizer.step()  # expect: GA102 "once more"
            scaler.update()
            optimizer.zero_grad()


if __name__ == "__main__":
    torch.manual_seed(0)
    model = nn.Linear(6, 2)
    made = [(torch.randn(4, 6), torch.randn(4, 2)) for _ in range(8)]
    sgd = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    train(model, sgd, torch.amp.GradScaler("cpu"), made, 4)
