"""GA104: a `continue` on a rare path skips the boundary, so two windows merge."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from galint.checks.finding import Finding
from galint.checks.view import View
from galint.ledger import OptimizerLedger, Step
from galint.run.facts import Event
from galint.source import Span

CODE = "GA104"
WITNESS = "rare"


def check(view: View) -> Iterator[Finding]:
    """One window of nearly twice N micro-batches where a rare `continue` ran on the stepping micro-batch."""
    if view.scenario.rare is None:
        return
    for ledger in view.ledgers:
        cadence = view.cadence(ledger)
        if cadence is None or cadence.guard is None or cadence.n < 2 or not view.lone(ledger):
            continue
        merged = _merged(view, ledger, cadence.n)
        left = _left(view, merged) if merged is not None else None
        if merged is None or left is None:
            continue
        count = len(dict.fromkeys(e.micro for e in merged.applied))
        yield Finding(
            CODE,
            left,
            f"when this `continue` runs on a window's last micro-batch it skips the step: the next step applies "
            f"{count} micro-batches instead of {cadence.n}",
            step=merged,
            window=cadence.n,
            related=view.places(merged),
        )


def _merged(view: View, ledger: OptimizerLedger, n: int) -> Step | None:
    """The only window that is longer than N; None where others are wrong too, or where it was cleared."""
    steps = view.steps(ledger)
    long = [s for s in steps if len(view.window(s)) > n]
    others = [s for s in steps if not long or s is not long[0]]
    if len(long) != 1 or not others or any(len(view.window(s)) != n for s in others):
        return None
    count = len(dict.fromkeys(e.micro for e in long[0].applied))
    passes = {m.serial for t in view.window(long[0]) if (m := view.micro(t)) is not None}
    # A counter of what was not skipped ends an epoch inside a window: what leaks from there is GA402's.
    return long[0] if n < count <= 2 * n and len(passes) == 1 else None


def _left(view: View, step: Step) -> Span | None:
    """The `continue` that ran once in the whole run, before this step."""
    events: list[Event] = [e for e in view.run.events if e.kind == "continue"]
    often = Counter(e.span for e in events)
    rare = [e for e in events if often[e.span] == 1 and e.seq < step.seq]
    return rare[-1].span if rare else None
