"""The training loop of the study, with a switch for each mistake, and what it measures.

The distance of a step is |applied - large| / |large|: the gradient that the step applies (before clipping)
against that of the same samples as one batch, at the same parameters, buffers put back.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from statistics import median
from typing import Any

import torch
from torch import nn

from galint.trace.batching import restored_buffers
from galint.trace.experiment.data import Images

BATCH = 64
"""Samples of an optimizer step."""

CLIP = 0.5
"""Largest gradient norm where a mistake is about clipping."""

MISTAKES: dict[str, tuple[str, str]] = {
    "zero-grad-inside": ("GA101", "zero_grad before every micro-batch"),
    "never-zeroed": ("GA102", "no zero_grad at all"),
    "unscaled": ("GA201", "no division by N"),
    "divided-twice": ("GA202", "divided by N twice"),
    "early-unscale": ("GA301", "unscale_ after the first micro-batch"),
    "clip-scaled": ("GA302", "clipped before unscale_"),
    "clip-inside": ("GA303", "clipped on every micro-batch"),
    "modulo-from-zero": ("GA401", "i % N == 0 from 0: the first window is one micro-batch"),
    "leaked-tail": ("GA402", "the epoch's partial window leaks into the next"),
    "scheduler-inside": ("GA404", "the scheduler advances on micro-batches"),
}
"""Name → the rule that finds it, and what is done."""


@dataclass(frozen=True, slots=True)
class Plan:
    """One run: how a step's 64 samples are split, the normalisation, the mistake."""

    name: str
    micro: int
    norm: str
    mistake: str | None = None
    group: str = "split"

    @property
    def n(self) -> int:
        """Micro-batches in a window."""
        return BATCH // self.micro


def plans() -> list[Plan]:
    """All runs in the order of the report."""
    answer = [
        Plan(f"{label} {norm}", micro, norm)
        for norm in ("batchnorm", "groupnorm", "none")
        for label, micro in (("64", 64), ("16x4", 16), ("8x8", 8))
    ]
    return answer + [Plan(name, 16, "groupnorm", name, "mistake") for name in MISTAKES]


@dataclass(slots=True)
class Curve:
    """What a run measured. `memory` are bytes; `memory_kind` says of what."""

    plan: Plan
    losses: list[float] = field(default_factory=list)
    accuracy: list[tuple[int, float]] = field(default_factory=list)
    distances: list[tuple[int, float]] = field(default_factory=list)
    norms: list[tuple[int, float, float]] = field(default_factory=list)
    """Step, norm of the applied gradient, norm of the large batch's."""
    seconds: float = 0.0
    """Median seconds of an optimizer step, measuring left out."""
    memory: int = 0
    memory_kind: str = ""
    diverged: bool = False

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


def batches(images: Images, micro: int, epochs_of: int, seed: int) -> Iterator[tuple[int, torch.Tensor]]:
    """(position in the epoch, sample indices) for ever; epochs of `epochs_of` samples, shuffled alike in all runs."""
    generator = torch.Generator().manual_seed(seed)
    while True:
        order = torch.randperm(len(images.train), generator=generator)[:epochs_of]
        for position, start in enumerate(range(0, epochs_of - micro + 1, micro)):
            yield position, order[start : start + micro]


def saved_bytes(model: nn.Module, x: torch.Tensor, y: torch.Tensor) -> int:
    """Bytes that one forward keeps for its backward, plus parameters and gradients."""
    seen: dict[int, int] = {}

    def pack(t: torch.Tensor) -> torch.Tensor:
        seen[t.untyped_storage().data_ptr()] = t.untyped_storage().nbytes()
        return t

    with restored_buffers(model), torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        nn.functional.cross_entropy(model(x), y)
    for p in model.parameters():
        seen[p.data_ptr()] = 2 * p.numel() * p.element_size()
    return sum(seen.values())


def large_gradient(model: nn.Module, x: torch.Tensor, y: torch.Tensor) -> list[torch.Tensor]:
    """The gradient of these samples as one batch; `.grad` and buffers stay as they are."""
    with restored_buffers(model):
        loss = nn.functional.cross_entropy(model(x), y)
        return list(torch.autograd.grad(loss, list(model.parameters())))


def accuracy(model: nn.Module, images: Images, device: torch.device, limit: int) -> float:
    """Part of the test images that is classified rightly."""
    model.eval()
    right, count = 0, min(limit, len(images.test))
    with torch.no_grad():
        for start in range(0, count, 256):
            x = images.test[start : min(start + 256, count)].to(device)
            right += int((model(x).argmax(1).cpu() == images.test_labels[start : start + len(x)]).sum())
    model.train()
    return right / max(count, 1)


def train(
    plan: Plan,
    model: nn.Module,
    images: Images,
    device: torch.device,
    steps: int,
    seed: int,
    lr: float,
    measure_every: int,
    advance: Callable[[], None],
) -> Curve:
    """Train for `steps` optimizer steps; `advance` is called after each."""
    curve = Curve(plan)
    model.to(device).train()
    optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)
    mistake, n = plan.mistake, plan.n
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps) if mistake == "scheduler-inside" else None
    scaled = mistake in ("early-unscale", "clip-scaled")
    scaler = torch.amp.GradScaler(device.type, enabled=scaled, init_scale=2.0**12)
    # The leaking loop has one micro-batch more an epoch than windows hold; all others end their epochs with a window.
    tail = plan.micro if mistake == "leaked-tail" else 0
    epoch = min((len(images.train) - tail) // BATCH, 8) * BATCH + tail
    supply = batches(images, plan.micro, epoch, seed)
    window: list[torch.Tensor] = []
    times: list[float] = []
    spent, loss_sum, step = 0.0, 0.0, 0
    # Cloned: a slice would count the storage of all images.
    first = images.train[: plan.micro].clone().to(device), images.train_labels[: plan.micro].clone().to(device)
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
        curve.memory_kind = "peak allocated"
    else:
        curve.memory, curve.memory_kind = saved_bytes(model, *first), "activations, parameters, gradients"
    while step < steps:
        began = time.perf_counter()
        index, chosen = next(supply)
        x, y = images.train[chosen].to(device), images.train_labels[chosen].to(device)
        window.append(chosen)
        if mistake == "zero-grad-inside":
            optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        factor = {"unscaled": 1.0, "divided-twice": 1.0 / n**2}.get(mistake or "", 1.0 / n)
        scaled_loss: Any = scaler.scale(loss * factor)  # backward is untyped in torch
        scaled_loss.backward()
        if mistake == "early-unscale" and len(window) == 1:
            scaler.unscale_(optimizer)
        if mistake == "clip-inside":
            nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        if scheduler is not None:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # torch says that the order is wrong: it is the mistake
                scheduler.step()
        loss_sum += float(loss.detach())
        boundary = index % n == 0 if mistake == "modulo-from-zero" else (index + 1) % n == 0
        spent += time.perf_counter() - began
        if not boundary:
            continue
        if step % measure_every == 0:
            _measure(curve, model, images, device, window, step, scaler.get_scale() if scaled else 1.0, mistake)
        began = time.perf_counter()
        if mistake == "clip-scaled":
            nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        scaler.step(optimizer)
        scaler.update()
        if mistake not in ("never-zeroed", "zero-grad-inside"):
            optimizer.zero_grad()
        times.append(spent + time.perf_counter() - began)
        spent = 0.0
        curve.losses.append(loss_sum / len(window))
        window, loss_sum = [], 0.0
        step += 1
        if step % max(1, steps // 8) == 0 or step == steps:
            curve.accuracy.append((step, accuracy(model, images, device, 512)))
        advance()
    curve.seconds = median(times)
    if device.type == "cuda":
        curve.memory = torch.cuda.max_memory_allocated(device)
    curve.diverged = not all(torch.isfinite(p).all() for p in model.parameters())
    return curve


def _measure(
    curve: Curve,
    model: nn.Module,
    images: Images,
    device: torch.device,
    window: list[torch.Tensor],
    step: int,
    scale: float,
    mistake: str | None,
) -> None:
    chosen = torch.cat(window)
    large = large_gradient(model, images.train[chosen].to(device), images.train_labels[chosen].to(device))
    # What an early unscale_ leaves is what the step applies; all other scaled gradients are unscaled by the step.
    divisor = 1.0 if mistake == "early-unscale" else scale
    applied = [p.grad.detach() / divisor if p.grad is not None else torch.zeros_like(p) for p in model.parameters()]
    size = float(sum((g.double() ** 2).sum() for g in large)) ** 0.5
    gap = float(sum(((a.double() - g.double()) ** 2).sum() for a, g in zip(applied, large, strict=True))) ** 0.5
    norm = float(sum((a.double() ** 2).sum() for a in applied)) ** 0.5
    curve.distances.append((step, gap / size if size else float("nan")))
    curve.norms.append((step, norm, size))
