"""A recipe in methods: settings in private copies, epochs cut to whole windows, gradients divided by the window's items."""

import sys

import torch
from settings import parse_settings
from torch import nn
from torch.utils.data import DataLoader


def scale_all(parameters, factor):
    for q in parameters:
        if q.grad is not None:
            q.grad.mul_(factor)


class Recipe:
    def __init__(self, cfg):
        self._every = cfg.every
        self._optimizer_in_bwd = cfg.get("optimizer_in_bwd", False)
        self.max_steps = cfg.max_steps
        self.epochs = cfg.epochs
        if self._optimizer_in_bwd and self._every > 1:
            raise RuntimeError("nothing to accumulate where every parameter steps in the backward")

    def setup(self, cfg):
        self._model = nn.Linear(8, 1)
        self._optimizer = self._make_optimizer(cfg, self._optimizer_in_bwd)
        self._scale = scale_all
        self._loader = self._make_loader(cfg)
        self._steps_per_epoch = len(self._loader) // self._every
        if self.max_steps is not None and self.max_steps < self._steps_per_epoch:
            self._steps_per_epoch = self.max_steps
        self.global_step = 0

    def _make_optimizer(self, cfg, optimizer_in_bwd=False):
        if optimizer_in_bwd:
            self._each = {q: torch.optim.SGD([q], lr=cfg.lr) for q in self._model.parameters()}
            for q in self._model.parameters():
                q.register_post_accumulate_grad_hook(lambda param: self._each[param].step())
            return None
        return torch.optim.SGD(self._model.parameters(), lr=cfg.lr)

    def _make_loader(self, cfg):
        return DataLoader(cfg.data, batch_size=cfg.batch_size, drop_last=True)

    def train(self):
        if not self._optimizer_in_bwd:
            self._optimizer.zero_grad()
        items = 0
        for _ in range(self.epochs):
            done = self.global_step % self._steps_per_epoch
            batches = iter(self._loader)
            count = 0
            while done < self._steps_per_epoch:
                try:
                    x, y = next(batches)
                except StopIteration:
                    break
                items += len(y)
                loss = nn.functional.mse_loss(self._model(x), y, reduction="sum")
                loss.backward()
                if (count + 1) % self._every == 0:
                    if not self._optimizer_in_bwd:
                        self._scale(list(self._model.parameters()), 1 / items)
                        self._optimizer.step()
                        self._optimizer.zero_grad()
                    self.global_step += 1
                    done += 1
                    items = 0
                count += 1


def main(cfg):
    recipe = Recipe(cfg)
    recipe.setup(cfg)
    recipe.train()


if __name__ == "__main__":
    sys.exit(main(parse_settings()))
