"""The same generator and loop, with nothing divided."""
# observe: params

import argparse

import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--total-size", type=int, default=64)
parser.add_argument("--rows", type=int, default=16)
parser.add_argument("--capacity", type=int, default=12)
args = parser.parse_args([])

n = args.total_size // args.rows
corpus = [torch.arange(1 + k % 5) for k in range(400)]
last_step = False


def packed():
    global last_step
    cursor, waiting = 0, []

    def refill():
        nonlocal cursor
        while len(waiting) < 8:
            waiting.append(corpus[cursor % len(corpus)])
            cursor += 1

    while True:
        rows = []
        for _ in range(args.rows):
            row = []
            while len(row) < args.capacity:
                while len(waiting) < 8:
                    refill()
                room = args.capacity - len(row)
                best = -1
                for index, piece in enumerate(waiting):
                    if len(piece) <= room and (best < 0 or len(piece) > len(waiting[best])):
                        best = index
                if best < 0:
                    row.extend([0] * room)
                    break
                row.extend(waiting.pop(best).tolist())
            rows.append(row[: args.capacity])
        if cursor >= len(corpus):
            last_step = True
        batch = torch.tensor(rows).to(torch.get_default_dtype())
        yield batch[:, :-1], batch[:, -1:]


torch.manual_seed(0)
model = nn.Linear(args.capacity - 1, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
loader = packed()
x, y = next(loader)
step = 0
while True:
    if last_step:
        break
    for _ in range(n):
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()  # expect: GA201
        x, y = next(loader)
    optimizer.step()
    model.zero_grad(set_to_none=True)
    step += 1
