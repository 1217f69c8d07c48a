"""GA106: losses are summed as tensors and backward runs once, so every graph of the window is kept."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from galint.checks.finding import Finding
from galint.checks.scaling import loop_node
from galint.checks.view import View
from galint.checks.windows import recurrent
from galint.ledger import Step
from galint.run.facts import BackwardFact
from galint.source import Span

CODE = "GA106"
WITNESS = "even"


def check(view: View) -> Iterator[Finding]:
    """One backward, inside the loop of its micro-batches, whose loss descends from all of a window's."""
    if view.run.facts.get("closure") or view.run.facts.get("manual_grad"):
        return
    seen: set[Span] = set()
    facts = {b.seq: b for b in view.run.backwards}
    for ledger in view.ledgers:
        steps = view.steps(ledger)
        for before, step in list(pairwise(steps))[:3]:
            sequences = {e.seq for e in step.applied}
            micros = {e.micro for e in step.applied}
            fact = facts.get(min(sequences)) if len(sequences) == 1 and len(micros) > 1 else None
            if fact is None or fact.order != len(micros) or fact.span in seen or not view.lone(ledger):
                continue
            if not _gated(view, fact, before, step, len(micros)):
                continue
            seen.add(fact.span)
            n = len(micros)
            yield Finding(
                CODE,
                fact.span,
                f"one backward for {n} micro-batches: the graphs of all {n} stay in memory until here, which is the memory "
                "that accumulation should save; run backward on each",
                step=step,
                window=n,
                related=view.places(step),
            )


def _gated(view: View, fact: BackwardFact, before: Step, step: Step, count: int) -> bool:
    """True when backward runs every `count` rounds of its own loop, and no state goes round that loop."""
    if not fact.where or len(step.position) != len(before.position) or step.position[:-1] != before.position[:-1]:
        return False
    if not step.position or step.position[-1] - before.position[-1] != count:
        return False
    loop = loop_node(view, fact.where[-1][0])
    return loop is not None and not recurrent(view, loop)
