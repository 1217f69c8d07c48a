"""As many epochs as there are steps, and the training is left when the steps are done."""

# observe: params
import torch
from torch import nn


class Learner:
    def __init__(self, net, optimizer):
        self.net, self.optimizer = net, optimizer

    def train(self, loader, total, accum):
        done = 0
        for _ in range(total):
            for batch in loader:
                done += 1
                loss = nn.functional.mse_loss(self.net(batch), batch[:, :2] + 1)
                if torch.isnan(loss):
                    return
                loss.backward()  # expect: GA201 "without 1/N"
                if done % accum == 0:
                    self.optimizer.step()
                    self.optimizer.zero_grad()
                if done == total:
                    break
            if done == total:
                break
