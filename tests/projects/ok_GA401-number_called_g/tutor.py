"""N is called G, which is what generators are called elsewhere; micro-batches are counted through all epochs."""

from torch.nn.functional import mse_loss
from torch.optim import SGD


class Tutor:
    def __init__(self, pupil, plan):
        self.pupil = pupil
        self.plan = plan
        self.optimizer = SGD(pupil.parameters(), lr=plan.rate, momentum=0.9)

    def teach(self, lessons):
        G = self.plan.gather
        self.optimizer.zero_grad()
        seen = 0
        for _ in range(self.plan.epochs):
            for x, y in lessons:
                loss = mse_loss(self.pupil(x), y) / G
                loss.backward()
                seen += 1
                if seen % G == 0:
                    self.optimizer.step()
                    self.optimizer.zero_grad()
