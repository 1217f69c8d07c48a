"""From some epoch on every micro-batch is attacked, and the attack clears; before that its method returns at once."""

# observe: params
import torch
from torch import nn


class Attack:
    def __init__(self, network, optimizer, measure, rate, begin):
        self.network, self.optimizer, self.measure = network, optimizer, measure
        self.rate, self.begin = rate, begin

    def again(self, x, y, epoch):
        if epoch < self.begin:
            return None
        for p in self.network.parameters():
            p.data.add_(self.rate * p.grad)
        loss = self.measure(self.network(x), y)
        self.optimizer.zero_grad()  # expect: GA101
        loss.backward()


def main(conf, batches):
    network, measure = nn.Linear(6, 1), nn.MSELoss()
    optimizer = torch.optim.SGD(network.parameters(), lr=0.05)
    attack = Attack(network, optimizer, measure, conf.rate, conf.begin)
    for epoch in range(conf.epochs):
        optimizer.zero_grad()
        for number, (x, y) in enumerate(batches):
            loss = measure(network(x), y) / conf.gather
            loss.backward()
            attack.again(x, y, epoch)
            if (number + 1) % conf.gather == 0:  # expect: GA403
                optimizer.step()
                optimizer.zero_grad()


class Settings:
    rate, begin, epochs, gather = 0.01, 1, 2, 4


if __name__ == "__main__":
    main(Settings, [(torch.randn(8, 6), torch.randn(8, 1)) for _ in range(10)])
