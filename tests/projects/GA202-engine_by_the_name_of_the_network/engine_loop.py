"""One loop for both: without a scaler the network is DeepSpeed's engine, which divides by N itself."""

import torch

import deepspeed  # noqa: F401


def one_epoch(model, criterion, batches, optimizer, scaler, update_freq):
    if scaler is None:
        model.zero_grad()
    else:
        optimizer.zero_grad()
    for step, (x, y) in enumerate(batches):
        if scaler is None:
            loss = criterion(model(x.half()), y)
        else:
            with torch.autocast("cuda"):
                loss = criterion(model(x), y)
        if scaler is None:
            loss /= update_freq
            model.backward(loss)  # expect: GA202
            model.step()
        else:
            loss /= update_freq
            scaler.scale(loss).backward()
            if (step + 1) % update_freq == 0 or step + 1 == len(batches):  # expect: GA205
                scaler.step(optimizer)
                scaler.update()
                optimizer.zero_grad()
