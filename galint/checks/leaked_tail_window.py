"""GA402: the partial last window of an epoch is applied together with the next epoch's first."""

from __future__ import annotations

from collections.abc import Iterator

from galint.checks.finding import Finding
from galint.checks.tails import tails
from galint.checks.view import View

CODE = "GA402"
WITNESS = "tail"


def check(view: View) -> Iterator[Finding]:
    """A window that spans two epochs and is longer than N."""
    for tail in tails(view):
        if tail.kind != "leaked" or tail.step is None or tail.cadence is None:
            continue
        total = len(dict.fromkeys(tail.step.window))
        lasts = "micro-batch of an epoch is" if tail.count == 1 else f"{tail.count} micro-batches of an epoch are"
        yield Finding(
            CODE,
            tail.span,
            f"the last {lasts} applied with the next epoch's first window: {total} gradients "
            f"in one step instead of {tail.cadence.n}, whenever {_label(tail.cadence.label)} does not divide the number of batches",
            step=tail.step,
            window=tail.cadence.n,
            related=view.places(tail.step)[:1],
        )


def _label(label: str) -> str:
    return label if label.isdigit() else f"`{label}`"
