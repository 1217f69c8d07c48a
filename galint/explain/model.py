"""The typed answer of `galint explain`: loops, their windows, and the micro-batches in them."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from galint.source import Span

Kind = Literal[
    "forward", "backward", "no_sync", "sync_flag", "clear", "unscale", "clip", "rescale", "step", "update", "scheduler"
]
Verdict = Literal["same", "different", "unknown"]
Fate = Literal["applied", "discarded", "pending"]


@dataclass(frozen=True, slots=True)
class Happening:
    """One thing that touched gradients. `detail` is a short phrase such as `4 micro-batches, unscaled`."""

    kind: Kind
    span: Span
    detail: str = ""
    file: str = ""
    """Empty for the explained file itself."""


@dataclass(frozen=True, slots=True)
class MicroRow:
    """One micro-batch of a window.

    `share` is the coefficient of its gradient at backward (`1/4`), `scaler` the state of the whole
    accumulated gradient afterwards (None where no loss scaler is in use), `synced` whether its backward
    all-reduced (None where the model is not wrapped), `holds` the accumulated gradient as a formula.
    `number` is 1-based.
    """

    number: int
    share: str
    scaler: Literal["scaled", "unscaled", "mixed"] | None
    synced: bool | None
    holds: str
    held: tuple[int, ...]
    """The micro-batches in the accumulated gradient afterwards."""
    fate: Fate
    happenings: tuple[Happening, ...]
    lost_at: Span | None = None
    """What discarded it."""
    scaled_loss: bool = False
    """Its backward started from a loss multiplied by the loss scale."""


@dataclass(frozen=True, slots=True)
class Weight:
    """A micro-batch's coefficient in the applied gradient; `value` is None where a factor is not known."""

    number: int
    value: Fraction | None
    scaled: bool
    """Still multiplied by the loss scale."""


@dataclass(frozen=True, slots=True)
class WindowView:
    """The micro-batches between two optimizer steps, and what the step applied.

    `numbers` are the windows that look the same (1-based, rising), `first` and `last` their ends. `step` is None when no step
    follows: the micro-batches are never applied. `opening` and `closing` happen outside the
    micro-batches (around an inner loop).
    """

    numbers: tuple[int, ...]
    rows: tuple[MicroRow, ...]
    step: Span | None
    applied: str
    expected: str
    verdict: Verdict
    weights: tuple[Weight, ...] = ()
    stale: int = 0
    """Micro-batches that an earlier step already applied and nothing cleared."""
    opening: tuple[Happening, ...] = ()
    closing: tuple[Happening, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def first(self) -> int:
        """The first window that looks like this."""
        return self.numbers[0]

    @property
    def last(self) -> int:
        """The last window that looks like this."""
        return self.numbers[-1]


@dataclass(frozen=True, slots=True)
class Variant:
    """Windows that look different under other circumstances, said by `label` (`when args.fp16 is true`)."""

    label: str
    windows: tuple[WindowView, ...]


@dataclass(frozen=True, slots=True)
class LedgerView:
    """One optimizer of a loop: what gates its steps, its windows, and the configurations that differ."""

    optimizer: str
    n: int | None
    """N as the run had it; None when nothing gates the steps."""
    n_label: str
    guard: Span | None
    guard_text: str
    unless: bool
    """The step runs where the guard is false."""
    windows: tuple[WindowView, ...]
    variants: tuple[Variant, ...] = ()
    more: int = 0
    """Further kinds of windows that are not listed."""


@dataclass(frozen=True, slots=True)
class EffectiveBatch:
    """Samples that one optimizer step stands for: micro-batch x N x ranks; None where it is not known."""

    micro: str
    """The micro-batch size as the code spells it; empty when not visible."""
    micro_size: int | None
    n: int
    n_label: str
    ranks: bool
    """True when gradients are averaged over ranks, whose number the code does not say."""

    @property
    def samples(self) -> int | None:
        """Samples a rank contributes to one step."""
        return self.micro_size * self.n if self.micro_size is not None else None

    def __str__(self) -> str:
        size = str(self.micro_size) if self.micro_size is not None else self.micro or "micro-batch"
        text = f"{size} × {self.n}" + (" × ranks" if self.ranks else "")
        if self.samples is not None:
            text += f" = {self.samples}" + (" × ranks" if self.ranks else "")
        return text


@dataclass(frozen=True, slots=True)
class LoopView:
    """One training loop. A loop that is not understood says why in `reason`, and where in `reason_span`.

    One that is understood and never steps has no ledgers and says that; so does one that a framework runs by itself.
    """

    filename: str
    span: Span
    """The loop's header, or the lone backward where no loop is visible."""
    end_row: int
    text: str
    """The header's first line."""
    function: str
    """The function or method that holds it; empty at module level."""
    understood: bool
    ledgers: tuple[LedgerView, ...] = ()
    batch: EffectiveBatch | None = None
    reason: str = ""
    reason_span: Span | None = None
    assumptions: tuple[str, ...] = ()
    file: str = ""
    """Where the loop lies, when not in the explained file itself."""
    framework: str = ""
    """Whose automatic loop it is; then `reason` says what the framework does, and there are no windows."""
    warnings: tuple[str, ...] = ()
