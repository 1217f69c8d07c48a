"""A number in the code is run down from zero: the step is at the head of the next window, and each epoch begins with a clear."""

# observe: params
import torch
from torch import nn


def learn(net, parts, optimizer, epochs):
    many = 3
    for _ in range(epochs):
        for part in ("learn", "check"):
            if part == "learn":
                net.train()
                optimizer.zero_grad()
            else:
                net.eval()
            left = 0
            for batch in parts[part]:
                if part == "learn" and left == 0:  # expect: GA403
                    optimizer.step()
                    optimizer.zero_grad()
                    left = many
                with torch.set_grad_enabled(part == "learn"):
                    loss = nn.functional.mse_loss(net(batch), batch[:, :2] + 1) / many
                    if part == "learn":
                        loss.backward()
                        left -= 1


if __name__ == "__main__":
    net = nn.Linear(6, 2)
    data = [torch.randn(8, 6) for _ in range(10)]
    learn(net, {"learn": data, "check": data[:2]}, torch.optim.SGD(net.parameters(), lr=0.1), 2)
