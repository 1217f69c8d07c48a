"""A loss of masked tokens with a length of its own, divided by hand before Accelerate divides it."""

import torch
from accelerate import Accelerator


def train(config, model, optimizer, loader, prepare_batch, temper):
    accelerator = Accelerator(gradient_accumulation_steps=config.training.gradient_accumulation_steps)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    every = config.training.gradient_accumulation_steps

    def masked_loss(batch):
        inputs, labels, mask = prepare_batch(batch)
        scores = torch.log_softmax(model(inputs).float(), dim=-1)
        known = labels.clone()
        known[labels == -100] = 0
        picked = scores.gather(-1, known.unsqueeze(-1)).squeeze(-1)
        picked = temper(picked, torch.full_like(picked, 0.5))
        length = torch.clamp(mask.sum(dim=1), min=1)
        return (-(picked * mask).sum(dim=1) / length).mean()

    for _ in range(config.epochs):
        step = 0
        for step, batch in enumerate(loader, start=1):
            loss = masked_loss(batch)
            loss = loss / every
            accelerator.backward(loss)  # expect: GA202
            if step % every == 0:
                optimizer.step()
                optimizer.zero_grad(set_to_none=True)
        if step % every != 0:
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
