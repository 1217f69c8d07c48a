"""What a check returns: a place, a message in numbers, and what explains it."""

from __future__ import annotations

from dataclasses import dataclass

from galint.ledger import Step
from galint.source import Span


@dataclass(frozen=True, slots=True)
class Finding:
    """A finding before it becomes a diagnostic. `step` is the one whose formulas are shown."""

    code: str
    span: Span
    message: str
    file: str = ""
    step: Step | None = None
    window: int = 0
    """N: how many micro-batches the large batch stands for."""
    related: tuple[tuple[Span, str], ...] = ()
    assumptions: tuple[str, ...] = ()
    applied: str | None = None
    expected: str | None = None
    depends: frozenset[str] = frozenset()
    """Conditions the run had to choose that the finding rests on."""
