"""One method goes through the batches for training and for evaluation, and the window's end evaluates by calling it."""

# observe: params
import torch
from torch import nn


class Pairs:
    def __init__(self, net, batches, held_out, accum, every=2):
        self.net, self.batches, self.held_out = net, batches, held_out
        self.accum, self.every = accum, every
        self.optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        self.updates = 0

    def go_through(self, learns):
        total, seen = 0.0, 0
        for batch in self.batches if learns else self.held_out:
            loss = nn.functional.mse_loss(self.net(batch), batch[:, :2] + 1)
            if learns:
                loss = loss / self.accum
                loss.backward()
                if (seen + 1) % self.accum == 0:  # expect: GA402
                    self.optimizer.step()
                    self.optimizer.zero_grad()
                    self.updates += 1
                    if self.updates % self.every == 0:
                        self.evaluate()
            total += loss.item()
            seen += 1
        return total / seen

    def evaluate(self):
        with torch.no_grad():
            return self.go_through(learns=False)

    def fit(self, epochs):
        for _ in range(epochs):
            self.go_through(learns=True)


if __name__ == "__main__":
    data = [torch.randn(8, 6) for _ in range(10)]
    Pairs(nn.Linear(6, 2), data, data[:3], accum=4).fit(2)
