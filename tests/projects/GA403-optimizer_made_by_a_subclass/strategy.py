"""The optimizer is `None` in `__init__` and made by an abstract method that subclasses write elsewhere."""
# observe: params

from abc import ABC, abstractmethod


class Strategy(ABC):
    def __init__(self, network, epochs, accumulation):
        self.network, self.epochs, self.accumulation = network, epochs, accumulation
        self.optimizer, self.scheduler = None, None

    @abstractmethod
    def set_up(self): ...

    def run_training(self, loader):
        for _ in range(self.epochs):
            self.optimizer.zero_grad()
            for i, batch in enumerate(loader):
                loss = self.network(**batch).loss / self.accumulation
                loss.backward()
                if (i + 1) % self.accumulation == 0:  # expect: GA403
                    self.optimizer.step()
                    self.scheduler.step()
                    self.optimizer.zero_grad()
