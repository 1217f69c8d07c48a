"""One pass of a training whose number the caller gives, and counts from one."""

import torch
from torch.nn.functional import l1_loss


class Learner:
    def __init__(self, settings, network, pages):
        self.gather = settings["gather"] if "gather" in settings else 1
        self.network = network
        self.optimizer = torch.optim.AdamW(network.parameters())
        self.pages = iter(pages)

    def one_pass(self, number):
        self.network.train()
        page, text = next(self.pages)
        if self.gather < 2 or number % self.gather == 1:
            self.optimizer.zero_grad()
        loss = l1_loss(self.network(page), text)
        if self.gather > 1:
            loss /= self.gather
        loss.backward()
        if self.gather < 2 or number % self.gather == 0:
            self.optimizer.step()
        return loss.item()
