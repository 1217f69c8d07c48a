import torch


class NativeScaler:
    """The interface of the scaler that such trainings carry along."""

    def __init__(self):
        self.scaler = torch.amp.GradScaler("cpu")

    def __call__(self, loss, optimizer, parameters=None, update_grad=True):
        self.scaler.scale(loss).backward()
        if update_grad:
            self.scaler.step(optimizer)
            self.scaler.update()
