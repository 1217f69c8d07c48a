"""A resumed training validates first, by a pass that runs backward too; the file's own numbers end the training there."""
# observe: allreduces

import argparse

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def restore(path, model):
    state = torch.load(path)
    model.load_state_dict(state.model)
    return state.offset


def validate(model, batches):
    total = 0.0
    for x, y in batches:
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        model.zero_grad()
        total += loss.item()
    return total


def train(args, net, batches, held_out):
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    model = DistributedDataParallel(net)
    scaler = torch.amp.GradScaler("cuda", enabled=args.half)
    updates, seen = 0, 0
    if args.resume != "none":
        updates = restore(args.resume, model)
        print(validate(model, held_out))
    source = iter(batches)
    while updates < args.max_updates:
        x, y = next(source)
        seen += 1
        loss = nn.functional.mse_loss(model(x), y) / args.accum
        if args.half:
            scaler.scale(loss).backward()  # expect: GA601
        elif seen % args.accum == 0:
            loss.backward()
        else:
            with model.no_sync():  # expect: GA602
                loss.backward()
        if seen % args.accum == 0:
            if args.half:
                scaler.step(optimizer)
                scaler.update()
            else:
                optimizer.step()
            optimizer.zero_grad()
            updates += 1


def main(net, batches, held_out):
    parser = argparse.ArgumentParser()
    parser.add_argument("--resume", default="none")
    parser.add_argument("--half", action="store_true")
    parser.add_argument("--accum", type=int, default=4)
    parser.add_argument("--max_updates", type=int, default=3)
    train(parser.parse_args([]), net, batches, held_out)


if __name__ == "__main__":
    main(nn.Linear(3, 1), torch.load("batches.pt"), torch.load("held_out.pt"))
