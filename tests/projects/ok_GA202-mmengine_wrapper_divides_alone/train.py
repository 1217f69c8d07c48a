"""mmengine's OptimWrapper in its usual forms: under DDP with its own context, step by step, and one of several by key."""

import torch
from mmengine.optim import OptimWrapper
from torch import nn


def train(model, loader, epochs, n):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    wrapper = OptimWrapper(optimizer, accumulative_counts=n)
    model = nn.parallel.DistributedDataParallel(model)
    for _ in range(epochs):
        for x, y in loader:
            with wrapper.optim_context(model):
                loss = nn.functional.mse_loss(model(x), y)
            wrapper.update_params(loss)


def by_hand(model, loader, epochs, n):
    wrapper = OptimWrapper(torch.optim.SGD(model.parameters(), lr=0.1), accumulative_counts=n)
    for _ in range(epochs):
        for x, y in loader:
            loss = wrapper.scale_loss(nn.functional.mse_loss(model(x), y))
            wrapper.backward(loss)
            if wrapper.should_update():
                wrapper.step()
                wrapper.zero_grad()


class Gan(nn.Module):
    def train_step(self, data, optim_wrapper):
        critic = optim_wrapper["critic"]
        with critic.optim_context(self.critic):
            loss = self.critic(data).mean() - self.critic(self.generator(data.size(0)).detach()).mean()
        critic.update_params(loss)
        artist = optim_wrapper["artist"]
        with artist.optim_context(self.generator):
            loss = self.critic(self.generator(data.size(0))).mean()
        artist.update_params(loss)
        return {"loss": loss}
