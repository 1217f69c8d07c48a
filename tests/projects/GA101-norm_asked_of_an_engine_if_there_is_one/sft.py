"""The norm is asked of the engine only where DeepSpeed is used: without it the clear at the top loses micro-batches."""

from accelerate import Accelerator
from accelerate.utils import DistributedType


def train(args, denoiser, optimizer, batches):
    accelerator = Accelerator(gradient_accumulation_steps=args.accum, mixed_precision="bf16")
    denoiser, optimizer, batches = accelerator.prepare(denoiser, optimizer, batches)
    for batch in batches:
        with accelerator.accumulate(denoiser):
            optimizer.zero_grad()  # expect: GA101
            loss = denoiser(batch["noisy"]).sub(batch["target"]).square().mean()
            accelerator.backward(loss)
            optimizer.step()
            if accelerator.distributed_type == DistributedType.DEEPSPEED:
                print("norm", denoiser.get_global_grad_norm())
