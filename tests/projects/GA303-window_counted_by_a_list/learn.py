"""The window ends when a list holds N losses; the tensors of a sample are moved by a comprehension."""

# observe: params
from torch import nn


def train(net, samples, optimizers, accum):
    held = []
    net.zero_grad()
    for _ in range(2):
        for name, sample in samples:
            x, y = [part.to("cpu") for part in sample]
            loss = nn.functional.mse_loss(net(x), y) / accum
            loss.backward()
            nn.utils.clip_grad_norm_(net.parameters(), 0.05)  # expect: GA303
            held.append(loss.item())
            if len(held) % accum == 0:
                for optimizer in optimizers:
                    optimizer.step()
                net.zero_grad()
                print(name, sum(held))
                held = []
