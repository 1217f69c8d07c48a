"""The Accelerator is made elsewhere; the step waits for the number that it was given, by which its `backward` divides."""

from accelerate import Accelerator


class Tuner:
    def __init__(self, accelerator: Accelerator, network, optimizer):
        self.accelerator = accelerator
        self.network, self.optimizer = accelerator.prepare(network, optimizer)

    def run(self, batches, updates):
        for number in range(1, updates * self.accelerator.gradient_accumulation_steps + 1):
            loss = self.network(**next(batches)).loss
            self.accelerator.backward(loss)
            if number % self.accelerator.gradient_accumulation_steps == 0:
                self.accelerator.unwrap_optimizer(self.optimizer).step()
                self.network.zero_grad()
