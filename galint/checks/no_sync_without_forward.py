"""GA602: `no_sync` around backward only is inert."""

from __future__ import annotations

from collections.abc import Iterator

from galint.checks.finding import Finding
from galint.checks.sync import windows
from galint.checks.view import View
from galint.source import Span

CODE = "GA602"
WITNESS = "even"


def check(view: View) -> Iterator[Finding]:
    """A `no_sync` that the forward did not run under."""
    seen: set[Span] = set()
    for window in windows(view):
        if window.inert is None or window.synced < 2 or window.inert in seen:
            continue
        seen.add(window.inert)
        yield Finding(
            CODE,
            window.inert,
            f"`no_sync` wraps only the backward: DDP reads the flag at the forward, so {window.synced} of {window.total} micro-batches "
            "still all-reduce",
            step=window.step,
            window=window.total,
            related=view.places(window.step),
        )
