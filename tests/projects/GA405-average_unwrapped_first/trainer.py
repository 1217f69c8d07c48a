"""The moving average is prepared too, so it is unwrapped before each update."""

from accelerate import Accelerator
from ema_pytorch import EMA


class Trainer:
    def __init__(self, network, optimizer, accum=4):
        self.accelerator = Accelerator(gradient_accumulation_steps=accum)
        self.ema = EMA(network)
        self.ema, self.network, self.optimizer = self.accelerator.prepare(self.ema, network, optimizer)

    def train(self, loader):
        for batch in loader:
            with self.accelerator.accumulate(self.network):
                loss = self.network(batch)
                self.accelerator.backward(loss)
                self.optimizer.step()
                self.optimizer.zero_grad()
            self.accelerator.unwrap_model(self.ema).update()  # expect: GA405
