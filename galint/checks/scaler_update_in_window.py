"""GA304: `scaler.update()` changes the loss scale inside a window."""

from __future__ import annotations

from collections.abc import Iterator

from galint.checks.finding import Finding
from galint.checks.view import View
from galint.checks.windows import full_windows, later_micros
from galint.source import Span

CODE = "GA304"
WITNESS = "even"


def check(view: View) -> Iterator[Finding]:
    """An update while scaled gradients of a window are held and more are still to come."""
    seen: set[Span] = set()
    for window in full_windows(view):
        if len(view.ledgers) > 1 and not view.lone(window.ledger):
            continue
        marks = window.step.marks
        for mark in marks:
            if mark.kind != "update" or mark.span in seen or not mark.pending:
                continue
            if any(m.kind == "unscale" and m.seq < mark.seq for m in marks):
                continue  # an early unscale is GA301's business
            later = later_micros(window, mark)
            held = {e.micro for e in window.step.applied if e.seq < mark.seq}  # what is cleared before the step is gone
            if not later or not held or not any(e.facts.scale_span is not None for e in window.step.applied):
                continue
            seen.add(mark.span)
            total = len(window.micros)
            yield Finding(
                CODE,
                mark.span,
                f"`update()` runs after {len(held)} of {total} micro-batches: the other {len(later)} may be "
                "multiplied by another loss scale, and without a step before it the call raises AssertionError",
                step=window.step,
                window=total,
                related=view.places(window.step),
            )
