"""The average is kept where a setting asks for it, and updated outside `sync_gradients`."""

from accelerate import Accelerator
from ema_pytorch import EMA


class Trainer:
    def __init__(self, model, optimizer, loader, updates, grad_accum_every=1, use_ema=True):
        self.accelerator = Accelerator(gradient_accumulation_steps=grad_accum_every)
        self.model, self.optimizer, self.loader = self.accelerator.prepare(model, optimizer, loader)
        self.updates = updates
        self.use_ema = use_ema
        if self.use_ema:
            self.ema = EMA(self.model)

    def forward(self):
        stream = iter(self.loader)
        for _ in range(self.updates):
            self.model.train()
            with self.accelerator.accumulate(self.model):
                loss = self.model(next(stream))
                self.accelerator.backward(loss)
                if self.accelerator.sync_gradients:
                    self.accelerator.clip_grad_norm_(self.model.parameters(), 1.0)
                self.optimizer.step()
                self.optimizer.zero_grad()
            if self.accelerator.is_main_process and self.use_ema:
                self.ema.update()  # expect: GA405
            self.accelerator.wait_for_everyone()
