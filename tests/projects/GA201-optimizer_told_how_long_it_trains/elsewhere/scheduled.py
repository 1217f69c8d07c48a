import torch


class ScheduledSGD(torch.optim.SGD):
    def __init__(self, params, lr, warmup, t_total):
        super().__init__(params, lr=lr, momentum=0.9)
        self.warmup, self.t_total = warmup, t_total
