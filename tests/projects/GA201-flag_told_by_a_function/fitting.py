"""A method tells by its returns whether a window is full, and an attribute keeps the answer."""
# observe: params

from torch.nn.functional import mse_loss


class Fitting:
    def __init__(self, network, optimizer, every):
        self.network, self.optimizer, self.every = network, optimizer, every
        self.seen, self.full = 0, False

    def window_is_full(self):
        if self.seen % self.every == 0:
            return True
        return False

    def step(self, x, y):
        mse_loss(self.network(x), y).backward()  # expect: GA201 "self.every` = 4"
        self.seen += 1
        self.full = False
        if self.window_is_full():
            self.full = True
        if self.full:
            self.optimizer.step()
            self.optimizer.zero_grad()

    def fit(self, stream, updates):
        for _ in range(updates * self.every):
            self.step(*next(stream))
