"""A list holds the optimizers that no setting disables; the helper that steps them is given a loss divided elsewhere."""

import torch


class Optimizers:
    def __init__(self, settings, encoder, denoiser):
        self.every = settings.every
        self.encoder_optimizer, self.denoiser_optimizer = self.create(settings, encoder, denoiser)
        self.optimizers = []
        self.optimizers.append(self.encoder_optimizer) if self.encoder_optimizer is not None else None
        self.optimizers.append(self.denoiser_optimizer) if self.denoiser_optimizer is not None else None

    def create(self, settings, encoder, denoiser):
        if settings.disable_encoder:
            first = None
        else:
            first = torch.optim.SGD(encoder.parameters(), lr=settings.lr)
        if settings.disable_denoiser:
            second = None
        else:
            second = torch.optim.SGD(denoiser.parameters(), lr=settings.lr)
        return first, second

    def step(self, loss, index):
        loss.backward()
        if (index + 1) % self.every == 0:
            for optimizer in self.optimizers:
                optimizer.step()
            for optimizer in self.optimizers:
                optimizer.zero_grad(set_to_none=True)
