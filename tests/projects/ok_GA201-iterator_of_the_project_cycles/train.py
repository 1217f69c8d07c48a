"""Counters in a dictionary, batches from the project's own iterator, and the entry function handed to a helper."""

import torch
from cycling import Rounds, note_call
from torch import nn


def setup(settings, loader, folder=None):
    torch.manual_seed(0)
    model = nn.Linear(8, 1)
    state = {"model": model, "optimizer": torch.optim.SGD(model.parameters(), lr=0.01), "iter_num": 0, "step_count": 0}
    fit(state, settings, loader, folder)


def fit(state, settings, loader, folder):
    model, optimizer = state["model"], state["optimizer"]
    max_steps = settings.max_steps or float("inf")
    batches = Rounds(loader)
    while state["step_count"] < max_steps:
        state["iter_num"] += 1
        x, y = next(batches)
        if batches.epoch >= settings.epochs:
            break
        holding = state["iter_num"] % settings.accumulation() != 0
        loss = nn.functional.mse_loss(model(x), y)
        (loss / settings.accumulation()).backward()
        if not holding:
            optimizer.step()
            optimizer.zero_grad()
            state["step_count"] += 1
        if not holding and state["step_count"] % settings.save_every == 0:
            note_call(setup, folder)
