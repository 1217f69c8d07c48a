"""A recurrent network reads each batch in parts; their losses are summed, and backward runs once for all of them."""

import torch
from torch import nn


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.GRUCell(4, 8)
        self.head = nn.Linear(8, 1)

    def forward(self, part, state):
        state = self.cell(part, state)
        return self.head(state), state


def parts_of(signal, target):
    longest = signal.size(1)
    parts = []
    for index in range(longest):
        parts.append({"signal": signal[:, index], "target": target[:, index]})
    return parts


def main():
    torch.manual_seed(0)
    model = Reader()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    loader = [{"signal": torch.randn(4, 8, 4), "target": torch.randn(4, 8, 1)} for _ in range(6)]
    for batch in loader:
        state = None
        read = 0
        total = 0
        for part in parts_of(**batch):
            read += 1
            out, state = model(part["signal"], state)
            loss = nn.functional.mse_loss(out, part["target"])
            share = part["signal"].shape[0] / batch["signal"].shape[0]
            loss = loss * share
            total += loss
        total = total / read
        total.backward()
        optimizer.step()
        optimizer.zero_grad()


if __name__ == "__main__":
    main()
