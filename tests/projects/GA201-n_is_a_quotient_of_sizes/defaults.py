"""By default a batch is one part, so that only another setting accumulates."""

import argparse

import torch


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch_size", type=int, default=8)
    parser.add_argument("--micro_batch_size", type=int, default=8)
    args = parser.parse_args()
    model = torch.nn.Linear(3, 1)
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(2):
        opt.zero_grad()
        for i, (x, y) in enumerate(torch.load("batches.pt")):
            share = args.micro_batch_size / args.batch_size
            loss = torch.nn.functional.mse_loss(model(x), y) * share
            loss.backward()
            if (i + 1) % (args.batch_size // args.micro_batch_size) == 0:  # expect: GA403
                opt.step()
                opt.zero_grad()


if __name__ == "__main__":
    main()
