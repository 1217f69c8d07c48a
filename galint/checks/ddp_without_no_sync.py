"""GA601: DDP or FSDP all-reduces every micro-batch of a window."""

from __future__ import annotations

from collections.abc import Iterator

from galint.checks.finding import Finding
from galint.checks.sync import windows
from galint.checks.view import View
from galint.source import Span

CODE = "GA601"
WITNESS = "even"
_NAMES = {"ddp": "DDP", "fsdp": "FSDP", "fsdp2": "FSDP2", "apex-ddp": "apex DDP", "fabric": "Fabric"}


def check(view: View) -> Iterator[Finding]:
    """More than one synchronised micro-batch in a window, with no attempt to switch it off."""
    if any(e.kind == "sync_flag" and e.data.get("known") is False for e in view.run.events):
        return  # the program switches, by something that the run does not know
    seen: set[Span] = set()
    # Of several optimizers, the one that applies these gradients speaks before one that clears them.
    for window in sorted(windows(view), key=lambda w: bool(w.step.lost)):
        if window.synced < 2 or window.inert is not None or window.bypassed:
            continue
        if window.synced < window.total and 2 * window.synced <= window.total:
            # Most micro-batches are off: the loop does switch, once for each of its windows.
            continue
        entry = window.first
        if entry.span in seen:
            continue
        seen.add(entry.span)
        yield Finding(
            CODE,
            entry.span,
            f"{_NAMES.get(window.wrap, window.wrap)} all-reduces the gradients on {window.synced} of {window.total} micro-batches; one "
            "all-reduce a window gives the same gradient",
            step=window.step,
            window=window.total,
            related=((window.made, "wrapped here"), *view.places(window.step))
            if window.made
            else view.places(window.step),
            applied=None,
        )
