"""A conditional expression asks for an option that is off; a later early return asks again. DeepSpeed divides alone."""

import argparse

import deepspeed
import torch


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("--test_mode", action="store_true")
    parser.add_argument("--dtype", type=str, default="fp16")
    parser.add_argument("--lora_dim", type=int, default=0)
    parser.add_argument("--optimizer", type=str, default="adam")
    parser.add_argument("--gradient_checkpointing", action="store_true")
    parser.add_argument("--epochs", type=int, default=1)
    parser = deepspeed.add_config_arguments(parser)
    return parser.parse_args()


def main(create, data, dev):
    args = parse()
    settings = {"train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 4}
    if args.dtype == "bf16":
        torch.set_default_dtype(torch.bfloat16)
    model = create(frozen=True if args.test_mode else False)
    if args.lora_dim > 0:
        model.add_lora(args.lora_dim)
    if args.optimizer == "adam":
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)
    else:
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-5)
    engine, optimizer, _, _ = deepspeed.initialize(model=model, optimizer=optimizer, config=settings)
    if args.gradient_checkpointing:
        engine.gradient_checkpointing_enable()
    for batch in dev:
        if torch.distributed.get_rank() == 0:
            print(engine(batch))
    if len(dev) > 3:
        print(len(dev))
    if engine.monitor.enabled:
        engine.monitor.write_events([])
    if args.test_mode:
        return
    for _ in range(args.epochs):
        for batch in data:
            loss = engine(**batch)["loss"]
            engine.backward(loss)
            engine.step()
