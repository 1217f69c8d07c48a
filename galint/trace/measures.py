"""What a window's numbers mean: tolerances, comparisons and how numbers are written."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

from galint.trace.model import Micro, Status, Verdict, Window

WEIGHT = 1e-2
"""|N·w - 1| above this is not rounding (measured: 2e-8 in float32, 4e-3 with bfloat16 gradients)."""

RELATIVE = 1e-3
"""Relative error of the applied gradient above this is a different gradient."""


def number(value: float | None) -> str:
    """A number as people write it: four figures at most."""
    if value is None:
        return "unknown"
    if abs(value) < 1e-6:
        return "0"
    if math.isfinite(value) and round(value) and abs(value - round(value)) < 1e-3 and abs(value) < 1e6:
        return str(round(value))
    return f"{value:.3g}"


def weights(window: Window) -> str:
    """`N·w = 0, 0, 0, 1`, shortened when the window is long."""
    texts = [number(x) for x in window.nw]
    if len(texts) > 8:
        texts = [*texts[:4], f"… {len(texts) - 6} more …", *texts[-2:]]
    return "N·w = " + ", ".join(texts)


def close(value: float, to: float) -> bool:
    """Equal within the tolerance that held in practice."""
    return abs(value - to) <= WEIGHT * max(abs(to), 1.0)


def uniform(window: Window) -> float | None:
    """The common N·w of all micro-batches, or None when they differ."""
    values = window.nw
    if not values or any(abs(v - values[0]) > WEIGHT * max(abs(values[0]), 1e-12) for v in values):
        return None
    return values[0] if abs(values[0]) > WEIGHT / 10 else None


def agrees(window: Window) -> bool:
    """Whether the applied gradient is the large batch's, by either reference."""
    errors = [e for e in (window.relative_error, window.items_error) if e is not None]
    equal = all(close(v, 1.0) for v in window.nw) and not carried(window)
    return (bool(errors) and min(errors) <= RELATIVE) or (equal and bool(errors) and min(errors) <= WEIGHT)


def carried(window: Window) -> bool:
    return window.carry is not None and abs(window.carry) > WEIGHT


def all_reduces(count: int) -> str:
    """A number of all-reduces in words."""
    return f"{count} all-reduce" + ("s" if count != 1 else "")


def distance(window: Window) -> str:
    return (
        f"ratio of norms {number(window.ratio)}, cosine {number(window.cosine)}, "
        f"relative error {number(window.relative_error)}"
    )


def own(window: Window) -> list[Micro]:
    return [m for m in window.micros if not m.elsewhere]


def divided_by(window: Window) -> int:
    """The whole number that every loss of the window was divided by; 0 when there is none."""
    factors = {m.factor for m in window.micros}
    factor = next(iter(factors), None)
    if len(factors) != 1 or not factor or not 0 < factor <= 1:
        return 0
    return round(1 / factor) if abs(1 / factor - round(1 / factor)) < WEIGHT else 0


def other_n(window: Window) -> int:
    """The N that every loss was divided by, once, when it is not the window's own length; else 0."""
    n = divided_by(window)
    once = all(len(m.divisions) <= 1 for m in window.micros)
    return n if once and n > 1 and n != window.n else 0


@dataclass(slots=True)
class Case:
    """All windows of one optimizer, and what their lengths say about N."""

    optimizer: str
    windows: list[Window]
    n: int = 0
    verdicts: list[Verdict] = field(default_factory=list)

    @property
    def measured(self) -> list[Window]:
        return [w for w in self.windows if w.measured and w.n]

    def say(
        self,
        rule: str,
        status: Status,
        window: Window,
        measured: str,
        reference: str,
        reason: str,
        place: tuple[str, int] | None = None,
        windows: Iterable[Window] = (),
    ) -> None:
        """Add a verdict about `window` and those like it."""
        concerned = list(windows) or [window]
        file, line = place or (window.file, window.line)
        lines = {(w.file, w.line) for w in concerned} | {(m.file, m.line) for w in concerned for m in w.micros}
        lines |= {m.cleared for w in concerned for m in w.micros if m.cleared} | {(file, line)}
        self.verdicts.append(
            Verdict(
                rule,
                status,
                file,
                line,
                measured,
                reference,
                reason,
                self.optimizer,
                [w.index for w in concerned],
                sorted(lines),
            )
        )


def refute(case: Case, rule: str, reason: str, windows: list[Window] | None = None) -> None:
    chosen = windows or case.measured
    case.say(rule, Status.REFUTED, chosen[0], weights(chosen[0]), distance(chosen[0]), reason, windows=chosen)
