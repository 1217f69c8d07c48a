"""The prepared optimizer is unscaled by hand, and the clipping that follows unscales the one inside it."""

from accelerate import Accelerator


def train(options, network, optimizer, loader):
    accelerator = Accelerator(gradient_accumulation_steps=options.gather, mixed_precision="fp16")
    network, optimizer, loader = accelerator.prepare(network, optimizer, loader)
    for batch in loader:
        with accelerator.accumulate(network):
            loss = network(batch).square().mean()
            accelerator.backward(loss)
            if accelerator.sync_gradients:
                if accelerator.scaler is not None:
                    accelerator.scaler.unscale_(optimizer)  # expect: GA301 "twice"
                accelerator.clip_grad_norm_(network.parameters(), options.bound)
            optimizer.step()
            optimizer.zero_grad()
