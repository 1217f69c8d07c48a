"""Which penalty there is, a word says; where there is one, it is added behind the division."""
# observe: params

import argparse

import torch


def all_weights(model):
    total = None
    for w in model.parameters():
        if total is None:
            total = torch.abs(w).sum()
        else:
            total = total + torch.abs(w).sum()
    return total


def last_weights(model):
    return torch.abs(list(model.parameters())[-1]).sum()


def train(args, model, batches):
    if args.penalty == "all":
        penalty = all_weights
    elif args.penalty == "last":
        penalty = last_weights
    else:
        penalty = None
    opt = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for _ in range(args.epochs):
        opt.zero_grad()
        for i, (x, y) in enumerate(batches):
            loss = torch.nn.functional.mse_loss(model(x), y)
            if penalty is None:
                extra_loss = 0
            else:
                extra_loss = penalty(model) * args.weight
            loss = loss / args.accum + extra_loss
            loss.backward()  # expect: GA204
            if (i + 1) % args.accum == 0 or i + 1 == len(batches):
                opt.step()
                opt.zero_grad()


def main(words=None):
    parser = argparse.ArgumentParser()
    parser.add_argument("--penalty", choices=["none", "all", "last"], default="none")
    parser.add_argument("--weight", type=float, default=0.1)
    parser.add_argument("--accum", type=int, default=4)
    parser.add_argument("--epochs", type=int, default=2)
    torch.manual_seed(0)
    batches = [(torch.randn(2, 3), torch.randn(2, 1)) for _ in range(8)]
    train(parser.parse_args(words), torch.nn.Linear(3, 1), batches)


if __name__ == "__main__":
    main()
