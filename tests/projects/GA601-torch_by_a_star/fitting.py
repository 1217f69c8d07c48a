"""Everything of torch comes through a star, from a file that has nothing to do with training."""
# observe: allreduces

from common import *


class Fitting:
    def __init__(self, settings, net):
        self.settings, self.net = settings, net

    def run(self, optimizer, batches):
        if self.settings.rank != -1:
            self.net = torch.nn.parallel.DistributedDataParallel(self.net)
        for number in range(1, self.settings.updates * self.settings.window + 1):
            x, y = next(batches)
            loss = F.mse_loss(self.net(x), y) / self.settings.window
            loss.backward()  # expect: GA601
            if number % self.settings.window == 0:
                optimizer.step()
                optimizer.zero_grad()
