"""Objects called `ema` smooth the loss and the gradients' noise for the log, once a micro-batch."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Smooth:
    def __init__(self, decay):
        self.value, self.decay = 0.0, decay

    def update(self, value):
        self.value = self.decay * self.value + (1 - self.decay) * value


class Noise(Smooth):
    def update(self, small, large):
        super().update(small / large)


def noise_of(net):
    sizes = [p.grad.norm().item() for p in net.parameters()]
    return min(sizes), max(sizes)


def main(measures=False):
    torch.manual_seed(0)
    x = torch.randn(32, 8)
    loader = DataLoader(TensorDataset(x, x.sum(dim=1, keepdim=True)), batch_size=2)
    net = nn.Linear(8, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
    ema = Smooth(0.9)
    if measures:
        noise_ema = Noise(0.9)
    for index, (features, target) in enumerate(loader):
        loss = nn.functional.mse_loss(net(features), target)
        (loss / 4).backward()
        if measures:
            noise_ema.update(*noise_of(net))
        if (index + 1) % 4 == 0:
            optimizer.step()
            optimizer.zero_grad()
        ema.update(loss.detach().item())
    print(ema.value)


if __name__ == "__main__":
    main()
