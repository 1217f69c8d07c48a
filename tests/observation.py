"""What one observed run showed: micro-batches, steps, and distances between gradients."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

Gradients = dict[Tensor, Tensor]


@dataclass(eq=False)
class Micro:
    """One micro-batch: where its backward stands, the factor in its loss, and its own gradient."""

    line: int
    factor: float
    own: Gradients
    summed: bool
    forwards: list[tuple[nn.Module, tuple[Tensor, ...], Tensor]]
    synchronised: bool = False


@dataclass(eq=False)
class Step:
    """One optimizer step: its micro-batches, and the distance of the applied gradient from the large batch's."""

    line: int
    micros: int
    error: float
    weights: list[float]
    replayed: bool
    extra_allreduces: int
    unsynchronised: bool


@dataclass(eq=False)
class Observation:
    """What one run showed. `factors` pairs the line of each backward with the factor in its loss."""

    steps: list[Step] = field(default_factory=list)
    factors: list[tuple[int, float]] = field(default_factory=list)
    unapplied: int = 0
    raised: BaseException | None = None
    start: list[Tensor] = field(default_factory=list)
    final: list[Tensor] = field(default_factory=list)

    @property
    def error(self) -> float:
        """The largest relative error of an applied gradient."""
        return max((s.error for s in self.steps), default=0.0)

    @property
    def extra_allreduces(self) -> int:
        """Micro-batches that synchronised although they were not the last of their window."""
        return sum(s.extra_allreduces for s in self.steps)

    @property
    def unsynchronised(self) -> int:
        """Steps whose last micro-batch did not synchronise."""
        return sum(s.unsynchronised for s in self.steps)

    def distance(self, other: Observation) -> float:
        """How far two runs' final parameters lie apart, relative to how far the other one moved."""
        moved = norm([b - a for a, b in zip(other.start, other.final, strict=True)])
        apart = norm([a - b for a, b in zip(self.final, other.final, strict=True)])
        return apart / moved


def norm(tensors: Sequence[Tensor]) -> float:
    return float(torch.stack([t.square().sum() for t in tensors]).sum().sqrt()) if tensors else 0.0


def relative(applied: Sequence[Tensor], wanted: Sequence[Tensor]) -> float:
    scale = norm(wanted)
    apart = norm([a - b for a, b in zip(applied, wanted, strict=True)])
    return apart / scale if scale else float(apart > 0)
