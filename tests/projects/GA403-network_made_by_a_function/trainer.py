"""The network may be made anew by a function; each epoch begins and each window ends with its `zero_grad`."""

# observe: params
import torch
from torch import nn


class Trainer:
    def __init__(self, settings, model=None, model_init=None, optimizers=(None, None)):
        self.settings = settings
        self.model = model.to(settings.device) if model is not None else None
        self.model_init = model_init
        self.optimizer, self.scheduler = optimizers

    def prepare(self):
        if self.optimizer is None:
            groups = [{"params": [p for name, p in self.model.named_parameters() if name != "skip"]}]
            self.optimizer = torch.optim.SGD(groups, lr=0.1)

    def train(self, loader, epochs):
        if self.model_init is not None:
            model = self.model_init()
            self.model = model.to(self.settings.device)
            self.optimizer, self.scheduler = None, None
        self.prepare()
        model = self.model
        for _ in range(epochs):
            model.zero_grad(set_to_none=True)
            for step, batch in enumerate(loader):
                loss = nn.functional.mse_loss(model(batch), batch[:, :2] + 1) / self.settings.accum
                loss.backward()
                if (step + 1) % self.settings.accum == 0:  # expect: GA403
                    self.optimizer.step()
                    model.zero_grad(set_to_none=True)
