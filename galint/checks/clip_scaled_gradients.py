"""GA302: clipping sees gradients still multiplied by the loss scale."""

from __future__ import annotations

from collections.abc import Iterator

from galint.checks.finding import Finding
from galint.checks.view import View
from galint.source import Span

CODE = "GA302"
WITNESS = "even"


def check(view: View) -> Iterator[Finding]:
    """A clip over scaled gradients that no `unscale_` preceded."""
    if view.run.facts.get("asks_scaler"):
        return
    for ledger in view.ledgers:
        seen: set[Span] = set()
        for step in view.steps(ledger):
            for mark in step.marks:
                if mark.kind != "clip" or not mark.scaled or mark.span in seen:
                    continue
                if any(m.kind == "unscale" and m.seq < mark.seq for m in step.marks):
                    continue  # an early unscale is GA301's business
                if not (view.lone(ledger) or len(view.ledgers) == 1):
                    continue
                seen.add(mark.span)
                yield Finding(
                    CODE,
                    mark.span,
                    f"clipping sees the gradients of {mark.pending} micro-batch{'es' if mark.pending != 1 else ''} still "
                    "multiplied by the loss scale: call `unscale_` first",
                    step=step,
                    window=len(dict.fromkeys(step.window)),
                    related=view.places(step),
                )
