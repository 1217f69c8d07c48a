"""The batches are counted from the epoch that a checkpoint tells; the first window is as long as what the last mark says."""

from torch.nn.functional import mse_loss


class Trainer:
    def __init__(self, network, optimizer, saved, options):
        self.network, self.optimizer, self.options = network, optimizer, options
        self.first = 0
        self.resume(saved)

    def resume(self, saved):
        if saved is None:
            return
        self.network.load_state_dict(saved["network"])
        self.first = saved["epoch"] + 1

    def train(self, batches):
        mark = -1
        for epoch in range(self.first, self.options.epochs):
            self.optimizer.zero_grad()
            for number, (inputs, targets) in enumerate(batches):
                passed = number + len(batches) * epoch
                loss = mse_loss(self.network(inputs), targets, reduction="sum")
                loss.backward()
                if passed - mark >= self.options.every:
                    self.optimizer.step()
                    self.optimizer.zero_grad()
                    mark = passed
