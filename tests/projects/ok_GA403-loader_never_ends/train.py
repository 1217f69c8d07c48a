"""The loader is a class of another file that never ends; the run ends after a number of updates, so no tail is lost."""

import argparse

import torch
from data import build, loaders
from streams import MetaLoader, Prefetch


def main(opts, model, loaders):
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    meta = Prefetch(MetaLoader(loaders, accum_steps=opts.gradient_accumulation_steps))
    global_step = 0
    optimizer.zero_grad()
    for step, (task, batch) in enumerate(meta):
        loss = model(batch, task=task).mean()
        loss = loss / opts.gradient_accumulation_steps
        loss.backward()
        if (step + 1) % opts.gradient_accumulation_steps == 0:
            global_step += 1
            optimizer.step()
            optimizer.zero_grad()
        if global_step >= opts.num_train_steps:
            break


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--gradient_accumulation_steps", type=int, default=4)
    parser.add_argument("--num_train_steps", type=int, default=100000)
    main(parser.parse_args(), build(), loaders())
