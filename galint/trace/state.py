"""The ledger of one optimizer while it runs, and the numbers of a window when it closes."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import Any

import torch

from galint.trace.losses import LossInfo
from galint.trace.model import Micro, Window
from galint.trace.sampling import Sampler, trainable, unsupported_parameters
from galint.trace.solving import compare, gram, solve

MICROS = 256
"""More micro-batches than this in one window are not sampled: memory stays bounded."""

CLOSE = 1e-3
"""Numbers that the loop computes in float32 are the same when they agree to this part."""

COUNTING = 0.25
"""How far a window's divisor may be from the items counted and still be a count of them (a lost 1/N is far more)."""


@dataclass(slots=True)
class Pending:
    """A micro-batch whose gradient is (perhaps) in `.grad`: its record, sample and predicted coefficient."""

    micro: Micro
    row: torch.Tensor
    info: LossInfo
    coefficient: float = 1.0


class OptimizerState:
    """What is known about one optimizer between its steps."""

    def __init__(self, optimizer: torch.optim.Optimizer, label: str, sampling: bool = True) -> None:
        self.label = label
        self.index = 0
        self.lengths: Counter[int] = Counter()
        """How many windows had each length."""
        self.sampler = Sampler(optimizer, listening=sampling)
        self.members = {id(p) for p in trainable(optimizer)}
        self.unsupported = unsupported_parameters(trainable(optimizer))
        self.stale: torch.Tensor | None = None
        self.stale_coefficient = 0.0
        self.preclip: torch.Tensor | None = None
        self.boundary = False
        self.differed = False
        """Whether the window before this one was not the large batch's."""
        self.reset()

    def reset(self) -> None:
        """Begin a new window."""
        self.pending: list[Pending] = []
        self.captured: tuple[torch.Tensor, torch.Tensor, torch.Tensor | None] | None = None
        self.notes: dict[str, list[dict[str, Any]]] = {
            "clips": [],
            "unscales": [],
            "scaler_updates": [],
            "scheduler_steps": [],
            "side_effects": [],
            "no_sync_lines": [],
        }
        self.unscaled = False
        self.dropped = 0
        self.dropped_at: tuple[str, int] | None = None

    def note(self, kind: str, file: str, line: int, **data: Any) -> None:
        """Remember a call inside this window, with how many micro-batches came before it."""
        self.notes[kind].append({"file": file, "line": line, "after": len(self.pending), **data})

    def refresh(self, optimizer: torch.optim.Optimizer) -> None:
        """Sample again from scratch when parameter groups were added."""
        if len(optimizer.param_groups) != self.sampler.groups and not self.pending:
            self.sampler.remove()
            self.sampler = Sampler(optimizer)
            self.members = {id(p) for p in trainable(optimizer)}
            self.stale = None

    def clear(self, file: str, line: int) -> None:
        """The gradients were zeroed here."""
        if self.boundary and self.pending:
            # An end of epoch came after the last micro-batch: a partial window is thrown away on purpose or not,
            # but it is not the window that follows.
            lost = [p for p in self.pending if p.coefficient != 0]
            if lost:
                self.dropped += len(lost)
                self.dropped_at = (file, line)
            self.pending = []
        for entry in self.pending:
            if entry.coefficient != 0:
                entry.micro.cleared = (file, line)
                entry.coefficient = 0.0
        self.stale_coefficient = 0.0
        self.preclip = None
        self.unscaled = False

    def unscale(self, scale: float) -> None:
        """Everything accumulated so far was divided by the loss scale."""
        for entry in self.pending:
            entry.coefficient /= scale
        self.stale_coefficient /= scale
        if self.preclip is not None:
            self.preclip = self.preclip / scale
        self.unscaled = True

    @property
    def _in_doubt(self) -> bool:
        """Whether this window may be wrong, so that what its update does to the parameters will be asked."""
        odd = any(e.coefficient != 1 for e in self.pending) or self.stale_coefficient != 0
        return self.index == 0 or self.differed or odd

    def capture(self, fused_scale: float | None) -> None:
        """Read what the step is about to apply, before clipping, and what will be left behind."""
        left = self.sampler.snapshot()
        applied = left if self.preclip is None else self.preclip
        if fused_scale:
            applied = applied / fused_scale
            for entry in self.pending:
                entry.coefficient /= fused_scale
            self.stale_coefficient /= fused_scale
        self.captured = (applied, left, self.sampler.parameters() if self._in_doubt else None)

    def close(self, file: str, line: int, seq: int, rank: int, applied_elsewhere: set[int]) -> Window:
        """The window that this step ends, with its numbers (without them when nothing was captured)."""
        window = Window(self.index, self.label, file, line, seq=seq, rank=rank)
        window.micros = [entry.micro for entry in self.pending]
        for kind, notes in self.notes.items():
            setattr(window, kind, notes)
        window.dropped, window.dropped_at = self.dropped, self.dropped_at
        window.unsupported = self.unsupported
        window.allreduces = sum(m.allreduces for m in window.micros)
        window.bytes = sum(m.bytes for m in window.micros)
        if not self.sampler.dense:
            window.unsupported = "sparse gradients are not sampled"
        elif len(self.pending) > MICROS:
            window.unsupported = f"more than {MICROS} micro-batches in one window"
        for entry in self.pending:
            if entry.coefficient == 0 and entry.micro.seq in applied_elsewhere:
                entry.micro.elsewhere = True
        if self.captured is not None and not self.pending:
            window.idle = not bool(self.captured[0].any())
        if self.captured is not None and window.unsupported is None and self.pending:
            applied, _, before = self.captured
            measure(window, self.pending, applied, self.stale, self.stale_coefficient, set(self.lengths))
            self.differed = (window.relative_error or 0.0) > CLOSE
            if before is not None:
                update = self.sampler.parameters().sub_(before)
                window.update_norm, window.parameter_norm = torch.stack([update, before]).norm(dim=1).tolist()
        return window

    def next_window(self, window: Window) -> None:
        """Forget the window that was closed; keep what it left in `.grad`."""
        self.lengths[window.n] += 1
        self.index += 1
        if self.captured is not None:
            self.stale = self.captured[1]
            self.stale_coefficient = 1.0
        self.preclip = None
        self.reset()


def own_scales(entries: list[Pending], n: int, lengths: set[int]) -> list[float | None]:
    """What each raw gradient is of its own mean loss's gradient: factor times loss scale (None: unknown).

    A sum has no scale of its own, only conventions: undivided it stands for the sum over the large
    batch; divided by one of its counts it is a mean; divided by the count of the whole window it is
    weighted by items (as Hugging Face's Trainer does). Losses of one batch that run backward one by one
    have the scale of the first: the others' factors are their weights in that batch's loss.
    `lengths` are what N may be: this window's length and those before it.
    """
    for entry in entries:
        entry.micro.scale = entry.info.scale.value()
        entry.micro.items = entry.info.items.value() if entry.info.items is not None else None
    for entry in entries:
        entry.micro.divisions = entry.info.accumulating(n, lengths)
    factors: list[float | None] = [
        math.prod(e.micro.divisions) if e.info.reduction == "mean" else None for e in entries
    ]
    if all(entry.info.reduction == "sum" for entry in entries):
        whole = [entry.info.factor.value() for entry in entries]
        conversion = _sum_convention(entries, whole, n)
        if conversion is None:
            return [None] * len(entries)
        factors = [f * c for f, c in zip(whole, conversion, strict=True)]
    first: dict[int, float | None] = {}
    parts: dict[int, list[float]] = {}
    for entry, factor in zip(entries, factors, strict=True):
        first.setdefault(entry.micro.batch, factor)
        parts.setdefault(entry.micro.batch, []).append(factor or 0.0)
    for entry in entries:
        entry.micro.factor = first[entry.micro.batch]
        if len(parts[entry.micro.batch]) > 1 and not entry.micro.terms:
            entry.micro.terms = parts[entry.micro.batch]
    return [None if e.micro.factor is None else e.micro.factor * e.micro.scale for e in entries]


def _sum_convention(entries: list[Pending], factors: list[float], n: int) -> list[float] | None:
    if all(abs(f - 1) < CLOSE for f in factors):
        return [1.0 / n] * len(entries)
    options: list[list[float]] = []
    width = min(len(e.info.candidates) for e in entries)
    options += [[e.info.candidates[i].value() for e in entries] for i in range(width)]
    if not all(e.info.counted for e in entries):
        width = min(len(e.info.divisors) for e in entries)
        divisors = [[e.info.divisors[i].value() for e in entries] for i in range(width)]
        options += [d for d in divisors if not all(x == n for x in d)]
    for counts in options:
        products = [f * c for f, c in zip(factors, counts, strict=True)]
        if abs(sum(products) - 1) < CLOSE or all(abs(n * p - 1) < CLOSE for p in products):
            return counts
    for counts in options:
        if all(abs(f * c - 1) < CLOSE for f, c in zip(factors, counts, strict=True)):
            return counts
    if all(e.info.counted for e in entries) and max(factors) - min(factors) < CLOSE * max(factors) and options:
        # One divisor for the whole window that nearly is its item count: a Trainer that counts labels before the
        # shift, for instance. The weights are by items; the small constant is a matter of counting, not of N.
        total = sum(f * c for f, c in zip(factors, options[0], strict=True))
        if abs(total - 1) <= COUNTING:
            return [c / total for c in options[0]]
    return None


def measure(
    window: Window,
    entries: list[Pending],
    applied: torch.Tensor,
    stale: torch.Tensor | None,
    stale_coefficient: float,
    lengths: set[int],
) -> None:
    """Recover the window's weights and compare the applied gradient with both references."""
    n = max(window.n, 1)
    rows = [e.row for e in entries] + ([stale] if stale is not None else []) + [applied]
    matrix = gram(torch.stack([r.to(applied.device) for r in rows]))
    predicted = [e.coefficient for e in entries]
    window.predicted = list(predicted)
    solution = solve(matrix, predicted + ([stale_coefficient] if stale is not None else []), stale is not None)
    own = own_scales(entries, n, lengths | {n})
    if solution is None:
        window.unsupported = "gradients are not finite"
        return
    # Without a known factor the best that can be said is relative: assume the loop scales rightly.
    known = [(e.micro.scale / n if k is None else k) or 1.0 for k, e in zip(own, entries, strict=True)]
    window.w = [a * k for a, k in zip(solution.rows, known, strict=True)]
    for entry, norm, k in zip(entries, solution.norms, known, strict=True):
        entry.micro.norm = norm / abs(k)
    window.carry, window.residual = solution.carry, solution.residual
    belongs = [0.0 if e.micro.elsewhere else 1.0 for e in entries]
    equal = [b / (n * k) for b, k in zip(belongs, known, strict=True)]
    window.ratio, window.cosine, window.relative_error = (_finite(x) for x in compare(matrix, equal))
    items = [e.micro.items for e in entries]
    if all(i is not None for i in items):
        counted = {e.micro.batch: b * float(e.micro.items or 0) for b, e in zip(belongs, entries, strict=True) if b}
        total = sum(counted.values())
        if total > 0:
            weights = [b * float(i or 0) / (total * k) for b, i, k in zip(belongs, items, known, strict=True)]
            window.items_error = _finite(compare(matrix, weights)[2])


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def fused_scale_of(optimizer: torch.optim.Optimizer) -> float | None:
    """The loss scale that a fused optimizer will divide by inside its kernel, when GradScaler gave it one."""
    value = getattr(optimizer, "grad_scale", None)
    return float(value) if isinstance(value, torch.Tensor) else None


def micro_of(info: LossInfo, file: str, line: int, seq: int, batch: int, after_epoch: bool) -> Micro:
    """The record of a backward, from what the loss told."""
    return Micro(
        file,
        line,
        seq,
        loss=info.name,
        batch_size=info.batch_size,
        reduction=info.reduction,
        batch=batch,
        after_epoch=after_epoch,
        terms=list(info.terms),
    )
