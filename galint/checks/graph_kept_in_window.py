"""GA106: losses are summed as tensors and backward runs once, so every graph of the window is kept."""

from __future__ import annotations

from collections.abc import Iterator

from galint.checks.finding import Finding
from galint.checks.scaling import is_accumulation
from galint.checks.view import View
from galint.ledger import Step
from galint.source import Span

CODE = "GA106"
WITNESS = "even"


def check(view: View) -> Iterator[Finding]:
    """One backward whose loss descends from all the micro-batches of its window."""
    seen: set[Span] = set()
    facts = {b.seq: b for b in view.run.backwards}
    if view.run.facts.get("closure") or view.run.facts.get("manual_grad"):
        return
    for ledger in view.ledgers:
        cadence = view.cadence(ledger)
        for step in view.steps(ledger)[1:3]:
            sequences = {e.seq for e in step.applied}
            micros = {e.micro for e in step.applied}
            if len(sequences) != 1 or len(micros) < 2 or not _summed_on_purpose(view, step, len(micros), cadence):
                continue
            fact = facts.get(sequences.pop())
            if fact is None or fact.order != len(micros) or fact.span in seen or not view.lone(ledger):
                continue
            seen.add(fact.span)
            n = len(micros)
            yield Finding(
                CODE,
                fact.span,
                f"one backward for {n} micro-batches: the graphs of all {n} stay in memory until here, which is the "
                "memory that accumulation should save; run backward on each",
                step=step,
                window=n,
                related=view.places(step),
            )


def _summed_on_purpose(view: View, step: Step, count: int, cadence: object) -> bool:
    """A guard with N that also gates the backward, or a loop over what is called micro-batches."""
    number = getattr(cadence, "n", 0)
    if number:
        return bool(number == count)
    return is_accumulation(view, step, False)
