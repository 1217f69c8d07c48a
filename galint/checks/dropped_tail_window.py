"""GA403: the partial last window of an epoch is computed and thrown away."""

from __future__ import annotations

from collections.abc import Iterator

from galint.checks.finding import Finding
from galint.checks.tails import tails
from galint.checks.view import View

CODE = "GA403"
WITNESS = "tail"


def check(view: View) -> Iterator[Finding]:
    """A window cleared, or left over, after its loop has ended."""
    for tail in tails(view):
        if tail.kind != "dropped" or tail.cadence is None:
            continue
        label = tail.cadence.label if tail.cadence.label.isdigit() else f"`{tail.cadence.label}`"
        of = "of an epoch" if tail.clear is not None else "of the only pass over the data"
        cleared = ((tail.clear, "cleared here, at the start of the next epoch"),) if tail.clear is not None else ()
        loop = view.places(tail.step)[:1] if tail.step is not None else ()
        lasts = f"micro-batch {of} is" if tail.count == 1 else f"{tail.count} micro-batches {of} are"
        yield Finding(
            CODE,
            tail.span,
            f"the last {lasts} computed and thrown away whenever {label} does not divide the number of batches",
            step=tail.step,
            window=tail.cadence.n,
            related=(*loop, *cleared),
        )
