"""Accelerate with a DeepSpeed engine, whose norm is asked for: clearing at the top of a micro-batch does nothing there."""

from accelerate import Accelerator


def train(args, denoiser, optimizer, batches):
    accelerator = Accelerator(gradient_accumulation_steps=args.accum, mixed_precision="bf16")
    denoiser, optimizer, batches = accelerator.prepare(denoiser, optimizer, batches)
    for batch in batches:
        with accelerator.accumulate(denoiser):
            optimizer.zero_grad()
            loss = denoiser(batch["noisy"]).sub(batch["target"]).square().mean()
            accelerator.backward(loss)
            optimizer.step()
            if accelerator.sync_gradients:
                print("norm", denoiser.get_global_grad_norm())
