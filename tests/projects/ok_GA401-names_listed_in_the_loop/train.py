"""A list made in the loop ends, which is not the end of the loader: nothing synchronises because of it."""

from accelerate import Accelerator


def train(options, network, optimizer, loader):
    accelerator = Accelerator(gradient_accumulation_steps=options.gather)
    network, optimizer, loader = accelerator.prepare(network, optimizer, loader)
    batches = iter(loader)
    updates = 0
    while updates < options.updates:
        try:
            batch = next(batches)
        except StopIteration:
            batches = iter(loader)
            batch = next(batches)
        with accelerator.accumulate(network):
            loss = network(batch).square().mean()
            accelerator.backward(loss)
            if accelerator.sync_gradients:
                optimizer.step()
                optimizer.zero_grad()
        names = [name.upper() for name in ("train", "smooth")]
        if accelerator.sync_gradients:
            updates += 1
            accelerator.log(dict.fromkeys(names, loss.item()), step=updates)
