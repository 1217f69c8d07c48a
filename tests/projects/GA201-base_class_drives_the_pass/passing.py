"""One pass of its own; the base class of another file counts and calls."""
# observe: params

from driving import Driver
from torch.nn.functional import mse_loss


class Passing(Driver):
    def one_pass(self, x, y):
        loss = mse_loss(self.network(x), y)
        loss.backward()  # expect: GA201
        if self.turns % self.options.gather == 0:
            self.optimizer.step()
            self.optimizer.zero_grad()
