"""Plays the abstract run's events on real models, optimizers, a GradScaler and DDP."""

from __future__ import annotations

import contextlib
from typing import Any

import torch
from torch import nn

from galint.trace.stage import actors


class Player:
    """`operations` are (kind, row, optimizer, data). Each optimizer has a tiny model of its own unless they share one."""

    def __init__(self, job: dict[str, Any], device: torch.device, rank: int = 0) -> None:
        self.operations: list[Any] = job["operations"]
        self.device = device
        self.n = int(job["n"])
        self.generator = torch.Generator().manual_seed(1234 + rank)
        count = max([o[2] for o in self.operations], default=0) + 1
        shared = any(o[0] == "backward" and len(o[3][5]) > 1 for o in self.operations) or count == 1
        models: list[nn.Module] = [actors.tiny(7 + k, job["norm"]).to(device) for k in range(1 if shared else count)]
        wrapped = job["ddp"] and any(o[0] == "backward" and (not o[3][3] or o[3][4]) for o in self.operations)
        if job["ddp"] and (wrapped or job["traffic"]):
            models = [actors.wrapped(m, device) for m in models]
        self.models = [models[0] if shared else models[k] for k in range(count)]
        self.optimizers = [actors.optimizer("SGD", list(m.parameters())) for m in self.models]
        self.scaler = actors.scaler(device, True)
        self.scaled = any(o[0] == "backward" and o[3][2] for o in self.operations)

    def play(self, number: int) -> None:
        """One event."""
        kind, _, index, data = self.operations[number]
        optimizer = self.optimizers[max(index, 0)]
        match kind:
            case "backward":
                self._backward(*data)
            case "clear":
                optimizer.zero_grad()
            case "unscale" if self.scaled:
                self.scaler.unscale_(optimizer)
            case "clip":
                torch.nn.utils.clip_grad_norm_(self.models[max(index, 0)].parameters(), 1.0)
            case "update" if self.scaled:
                self.scaler.update()
            case "rescale":
                with torch.no_grad():
                    for model in dict.fromkeys(self.models):
                        for parameter in model.parameters():
                            if parameter.grad is not None:
                                parameter.grad.mul_(data[0])
            case "step":
                self.scaler.step(optimizer) if data[0] and self.scaled else optimizer.step()

    def _backward(
        self, micro: int, coefficient: float, scaled: bool, synced: bool, bypassed: bool, targets: list[int]
    ) -> None:
        x = torch.randn(actors.BATCH, actors.FEATURES, generator=self.generator).to(self.device)
        y = torch.randn(actors.BATCH, actors.CLASSES, generator=self.generator).to(self.device)
        model = self.models[targets[0] if targets else 0]
        quiet = isinstance(model, nn.parallel.DistributedDataParallel) and not synced
        with model.no_sync() if quiet else contextlib.nullcontext():  # type: ignore[operator]
            output = (actors.bare(model) if bypassed else model)(x)
            loss: Any = torch.nn.functional.mse_loss(output, y)
            if coefficient != 1.0:
                loss = self._scaled(loss, coefficient)
            (self.scaler.scale(loss) if scaled else loss).backward()

    def _scaled(self, loss: Any, coefficient: float) -> Any:
        """The loss times its factor: twice by N where that is what the factor is, as the text does."""
        n = self.n
        if n > 1 and abs(coefficient * n * n - 1) < 1e-9:
            return loss / n / n
        return loss / (1 / coefficient) if 0 < coefficient < 1 else loss * coefficient
