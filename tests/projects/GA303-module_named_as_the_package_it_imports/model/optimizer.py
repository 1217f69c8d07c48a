import torch


class ScheduledOptim:
    def __init__(self, net):
        self._optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
        self.current = 0

    def step_and_update_rate(self):
        self.current += 1
        self._optimizer.step()

    def zero_grad(self):
        self._optimizer.zero_grad()
