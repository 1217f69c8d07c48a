"""`if args.do_train: if not …: raise` is no reason to take `do_train` as false; many options stand before the loop."""
# observe: params

import argparse

import torch
from torch import nn


def main(model, loader, dev):
    parser = argparse.ArgumentParser()
    parser.add_argument("--do_train", action="store_true")
    parser.add_argument("--do_eval", action="store_true")
    parser.add_argument("--half", action="store_true")
    parser.add_argument("--freeze", action="store_true")
    parser.add_argument("--pruned", action="store_true")
    parser.add_argument("--checkpointing", action="store_true")
    parser.add_argument("--focal", action="store_true")
    parser.add_argument("--cache_dir", type=str, default="")
    parser.add_argument("--model_file", type=str, default="0")
    parser.add_argument("--gradient_accumulation_steps", type=int, default=1)
    args = parser.parse_args()
    if not args.do_train and not args.do_eval:
        raise ValueError("At least one of --do_train or --do_eval")
    if args.do_train:
        if not args.cache_dir:
            raise ValueError("cache")
    cache = args.cache_dir if args.cache_dir else "cache"
    if args.model_file != "0":
        model.load_state_dict(torch.load(args.model_file))
    if torch.cuda.device_count() > 1:
        model = nn.DataParallel(model)
    if args.half:
        model.half()
    if args.freeze:
        model.freeze()
    if args.pruned:
        model.prune()
    if torch.distributed.is_initialized():
        print(args)
    if args.checkpointing:
        model.gradient_checkpointing_enable()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    if args.do_train:
        model.train()
        for _ in range(3):
            for step, (x, y) in enumerate(loader):
                loss = nn.functional.cross_entropy(model(x), y)
                loss = loss / args.gradient_accumulation_steps
                loss.backward()
                if (step + 1) % args.gradient_accumulation_steps == 0:  # expect: GA402
                    optimizer.step()
                    optimizer.zero_grad()
    if args.do_eval and torch.distributed.is_initialized():
        model.eval()
        for x, y in dev:
            logits = model(x)
            if args.focal:
                logits = logits.softmax(-1)
            if y.dtype == torch.long:
                print(cache, logits)
