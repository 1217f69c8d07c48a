"""A wrapper holds network and optimizer, and another file calls its `step` for each batch."""
# observe: params

from torch import nn

from optimization import Decayed


class Wrapper:
    def __init__(self, args, network):
        self.args = args
        self.network = network
        self.optimizer = Decayed(network.parameters(), lr=args.lr)
        self.called = 0

    def step(self, batch):
        self.optimizer.zero_grad()  # expect: GA101
        x, y = batch
        loss = nn.functional.mse_loss(self.network(x), y)
        if self.args.gradient_accumulation_steps > 1:
            loss = loss / self.args.gradient_accumulation_steps
        loss.backward()
        if (self.called + 1) % self.args.gradient_accumulation_steps == 0:
            self.rates = self.optimizer.get_lr()
            self.optimizer.step()
        self.called += 1
        return loss
