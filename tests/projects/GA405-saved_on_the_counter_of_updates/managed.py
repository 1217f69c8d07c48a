"""Under Accelerate, with an interval that may be a word."""

from accelerate import Accelerator


def fit(args, model, opt, batches):
    accelerator = Accelerator(gradient_accumulation_steps=args.accum)
    model, opt, batches = accelerator.prepare(model, opt, batches)
    every = args.save_every
    if every is not None and every.isdigit():
        every = int(every)
    updates = 0
    for x, y in batches:
        with accelerator.accumulate(model):
            accelerator.backward((model(x) - y).square().mean())
            opt.step()
            opt.zero_grad()
        if accelerator.sync_gradients:
            updates += 1
        if isinstance(every, int):
            if updates % every == 0:  # expect: GA405
                accelerator.save_state(f"at_{updates}")
