"""GA205: a short last window is stepped but divided by N, not by its length."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from galint.checks.finding import Finding
from galint.checks.view import View
from galint.checks.windows import full_windows
from galint.ledger import Step
from galint.source import Span

CODE = "GA205"
WITNESS = "tail"


def check(view: View) -> Iterator[Finding]:
    """A step over fewer than N micro-batches whose coefficients are still 1/N."""
    seen: set[Span] = set()
    for full in list(full_windows(view)):
        n = full.n
        if full.automatic or not full.guarded or len(full.micros) != n:
            continue
        if len(view.ledgers) > 1 and not view.lone(full.ledger):
            continue
        windows = [(step, view.window(step)) for step in view.steps(full.ledger)]
        held = [micros for _, micros in windows if micros]
        odd = [i for i, micros in enumerate(held) if len(micros) != n and not _ends_an_epoch(view, micros)]
        runs_on = bool(odd) and all(i > 0 and len(held[i - 1]) + len(held[i]) == n for i in odd)
        if odd and not runs_on:
            continue
        for step, micros in windows:
            applied = {e.micro for e in step.applied}
            if not 0 < len(micros) < n or len(applied) != len(micros) or step.carried:
                continue
            if not _ends_an_epoch(view, micros) or any(
                step.passes(e) * view.coefficient(e).value != Fraction(1, n) or e.facts.summed for e in step.applied
            ):
                continue
            span = _place(view, step)
            if span in seen:
                continue
            seen.add(span)
            yield Finding(
                CODE,
                span,
                f"the last window of an epoch may hold fewer than {full.named} micro-batches ({len(micros)} here) and "
                f"is still divided by {n}: its step is {len(micros)}/{n} of the large batch's"
                + (
                    f"; the counter runs on, so the next epoch's first window has the other {n - len(micros)}"
                    if runs_on
                    else ""
                ),
                step=step,
                window=len(micros),
                related=view.places(step),
            )


def _ends_an_epoch(view: View, micros: list[int]) -> bool:
    """True when the window's last micro-batch is the last of its loop."""
    last = view.micro(micros[-1])
    if last is None:
        return False
    run = [m.iteration for m in view.run.micros.values() if (m.loop, m.serial) == (last.loop, last.serial)]
    return last.iteration == max(run)


def _place(view: View, step: Step) -> Span:
    guard = next((g for g in reversed(step.guards) if g.moduli), None)
    return guard.span if guard is not None else step.span
