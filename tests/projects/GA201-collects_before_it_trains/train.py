"""What happened is kept, and trained with once there is enough of it."""
# observe: params

from torch.nn.functional import mse_loss


def train(options, world, network, memory, optimizer):
    optimizer.zero_grad()
    for turn in range(options.turns):
        memory.keep(world.turn())
        if len(memory) > 5000:
            for part in range(options.parts):
                x, y = memory.draw(16)
                loss = mse_loss(network(x), y)
                loss.backward()  # expect: GA201
            optimizer.step()
            optimizer.zero_grad()


class Learner:
    def __init__(self, network, memory, optimizer, options):
        self.network, self.memory, self.optimizer, self.options = network, memory, optimizer, options

    def learn(self):
        if len(self.memory) < self.options.least:
            return
        self.optimizer.zero_grad()
        for part in range(self.options.parts):
            x, y = self.memory.draw(16)
            loss = mse_loss(self.network(x), y)
            loss.backward()  # expect: GA201
        self.optimizer.step()
