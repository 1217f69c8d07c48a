"""The method that steps asks a counter that another method moves, and is not called by name where the run begins."""

from torch.nn.functional import mse_loss


class Teacher:
    def __init__(self, network, optimizer, every):
        self.network, self.optimizer, self.every = network, optimizer, every
        self.seen = 1

    def learn(self, loss):
        loss = loss / self.every
        loss.backward()
        if self.seen % self.every == 0:
            self.optimizer.step()
            self.optimizer.zero_grad()

    def lesson(self, x, y):
        loss = mse_loss(self.network(x), y)
        self.learn(loss)
        return loss.item()

    def course(self, batches):
        for x, y in batches:
            self.lesson(x, y)
            self.seen += 1

    def study(self, batches, epochs):
        for _ in range(epochs):
            self.course(batches)


def start(teacher, batches):
    teacher.study(batches, 3)
