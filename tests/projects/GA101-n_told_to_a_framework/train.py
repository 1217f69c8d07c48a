"""N helps to say how often a state is saved before any loop counts to it; Accelerate is told which number it is."""

from accelerate import Accelerator


def main(options, network, optimizer, loader):
    accelerator = Accelerator(gradient_accumulation_steps=options.gather)
    often = options.often * options.gather
    network, optimizer, loader = accelerator.prepare(network, optimizer, loader)
    for number, batch in enumerate(loader):
        if number % often == 0:
            accelerator.save_state(f"state-{number}")
        with accelerator.accumulate(network):
            optimizer.zero_grad()  # expect: GA101 "3 of 4"
            loss = network(batch).square().mean()
            accelerator.backward(loss)
            optimizer.step()
