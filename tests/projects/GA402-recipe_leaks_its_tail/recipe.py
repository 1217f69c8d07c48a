"""The same kind of recipe goes over the whole loader: what is left of an epoch joins the next one's first window."""
# observe: params

import sys

import torch
from settings import parse_settings
from torch import nn
from torch.utils.data import DataLoader


class Recipe:
    def __init__(self, cfg):
        self._every = cfg.every
        self._optimizer_in_bwd = cfg.get("optimizer_in_bwd", False)
        self.max_steps_per_epoch = cfg.max_steps
        self.epochs = cfg.epochs

    def setup(self, cfg):
        self._model = nn.Linear(8, 1)
        self._optimizer = torch.optim.SGD(self._model.parameters(), lr=cfg.lr)
        self._loader = DataLoader(cfg.data, batch_size=cfg.batch_size, drop_last=True)
        self._steps_per_epoch = len(self._loader) // self._every
        if self.max_steps_per_epoch is not None and self.max_steps_per_epoch < self._steps_per_epoch:
            self._steps_per_epoch = self.max_steps_per_epoch
        self.global_step = 0

    def train(self):
        self._optimizer.zero_grad()
        for _ in range(self.epochs):
            for index, (x, y) in enumerate(self._loader):
                if self.max_steps_per_epoch is not None and (index // self._every) == self.max_steps_per_epoch:
                    break
                loss = nn.functional.mse_loss(self._model(x), y) / self._every
                loss.backward()
                if (index + 1) % self._every == 0:  # expect: GA402
                    if not self._optimizer_in_bwd:
                        self._optimizer.step()
                        self._optimizer.zero_grad()
                    self.global_step += 1


def main(cfg):
    recipe = Recipe(cfg)
    recipe.setup(cfg)
    recipe.train()


if __name__ == "__main__":
    sys.exit(main(parse_settings()))
