"""The loop over the batches, for whatever class has a pass of its own."""


class Driver:
    def __init__(self, network, loader, optimizer, options):
        self.network, self.loader, self.optimizer, self.options = network, loader, optimizer, options
        self.turns = 0

    def one_pass(self, x, y):
        raise NotImplementedError

    def epoch(self):
        for x, y in self.loader:
            self.turns += 1
            self.one_pass(x, y)

    def drive(self):
        for _ in range(self.options.epochs):
            self.epoch()
