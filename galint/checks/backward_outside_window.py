"""GA103: backward runs only on the stepping micro-batch, or on none, so the others never contribute."""

from __future__ import annotations

import re
from collections.abc import Iterator
from fractions import Fraction
from itertools import pairwise

from galint import program as p
from galint.checks.finding import Finding
from galint.checks.view import View
from galint.checks.windows import calls, divides_by, program_nodes, recurrent
from galint.ledger import OptimizerLedger, Step, mean_formula
from galint.run.facts import BackwardFact
from galint.run.nodes import terminal
from galint.run.reach import BACKWARD
from galint.run.summary import in_vain
from galint.source import Span

CODE = "GA103"
WITNESS = "even"
_READS = frozenset({"float", "print", "str", "isnan", "isfinite", "isinf", "item"})
"""Calls that look at a loss and do nothing else with it."""


def check(view: View) -> Iterator[Finding]:
    """N forwards, one backward of a loss divided by N, one step."""
    if view.run.facts.get("closure") or view.run.facts.get("manual_grad"):
        return
    yield from _never(view)
    orders = {b.seq: b for b in view.run.backwards}
    seen: set[Span] = set()
    for ledger in view.ledgers:
        cadence = view.cadence(ledger)
        steps = view.steps(ledger)
        for before, step in pairwise(steps):
            n = cadence.n if cadence is not None else len(_forwards(view, before, step))
            found = _only(view, ledger, before, step, n, orders)
            if found is None or found in seen or not view.lone(ledger):
                continue
            rounds = step.position[-1] - before.position[-1] if step.position and before.position else 0
            if cadence is None and rounds != n and not _overwritten(view, found):
                continue
            literal = cadence is None or cadence.label.isdigit()
            if literal and not divides_by(view, n, _keys(step) | _asked(step)):
                continue
            seen.add(found)
            yield Finding(
                CODE,
                found,
                f"backward runs on one of {n} micro-batches: the other {n - 1} are forwarded and never contribute, and "
                f"the one that does is divided by {n}",
                step=step,
                window=n,
                related=view.places(step),
                applied=f"g{n}/{n}",
            )


def _never(view: View) -> Iterator[Finding]:
    """`if N > 1: loss = loss / N` and the only backward under its `else`."""
    for stmt, step in in_vain(view.run):
        if not _only_scales(view, stmt):
            continue
        guard = next(g for g in step.guards if g.moduli)
        n = max(value for _, value in guard.moduli)
        for part in (n for side in (stmt.body, stmt.orelse) for s in side for n in view.static.walk(s)):
            if isinstance(part, p.Call) and terminal(part.func) in {"backward", "manual_backward"}:
                yield Finding(
                    CODE,
                    part.span,
                    f"`{p.text(stmt.test)}` keeps the backward from running: the steps apply no gradient unless N is 1",
                    window=n,
                    related=(
                        (stmt.span, "decides by N"),
                        (guard.span, "the step's guard"),
                        (step.span, "the optimizer step"),
                    ),
                    applied="0",
                    expected=mean_formula(n),
                )


def _only_scales(view: View, stmt: p.If) -> bool:
    """Whether the side without a backward computes a loss and hands it to nothing that could run one out of sight."""
    side = next((s for s in (stmt.body, stmt.orelse) if BACKWARD not in view.static.body_tags(s)), ())
    if not all(isinstance(s, (p.Assign, p.AugAssign, p.Pass)) for s in side):
        return False
    if any(isinstance(n, p.Call) for s in side for n in view.static.walk(s)):
        return False
    backwards = [n for s in (*stmt.body, *stmt.orelse) for n in view.static.walk(s) if isinstance(n, p.Call)]
    losses = {n.id for c in backwards for n in view.static.walk(c) if isinstance(n, p.Name)}
    given = (c for c in calls(view) if c not in backwards and terminal(c.func) not in _READS)
    return not any(isinstance(a.value, p.Name) and a.value.id in losses for c in given for a in c.args)


def _only(
    view: View, ledger: OptimizerLedger, before: Step, step: Step, n: int, facts: dict[int, BackwardFact]
) -> Span | None:
    """The window's only backward, where N micro-batches went forward and its loss was divided by N."""
    if n < 2 or len(view.window(step)) != 1 or step.lost or len({e.seq for e in step.applied}) != 1:
        return None
    entry = step.applied[0]
    fact = facts.get(entry.seq)
    if fact is None or fact.order > 1 or abs(view.coefficient(entry).value) != Fraction(1, n):
        return None
    if len(_forwards(view, before, step)) != n or _grows(view, entry.span):
        return None
    return entry.span


def _overwritten(view: View, backward: Span) -> bool:
    """Whether the backward starts from a loss that a loop before it gives anew in each pass."""
    names = _starts(view, backward)
    return any(names & given and not recurrent(view, loop) for loop, given in view.static.gathering.items())


def _starts(view: View, backward: Span) -> set[str]:
    """The names that a backward starts from."""
    started = [part for c in calls(view) if c.span == backward for part in (c.func, *(a.value for a in c.args))]
    return {n.id for part in started for n in view.static.walk(part) if isinstance(n, p.Name)}


def _grows(view: View, backward: Span) -> bool:
    """Whether what a backward starts from is a sum that the program adds to: the others contribute through it."""
    names = _starts(view, backward)
    return any(
        isinstance(n, p.AugAssign) and n.op == "+" and isinstance(n.target, p.Name) and n.target.id in names
        for n in program_nodes(view)
    )


def _forwards(view: View, before: Step, step: Step) -> set[int]:
    """The micro-batches that went forward with gradients between two steps."""
    return {e.micro for e in view.run.events if e.kind == "forward" and before.seq < e.seq < step.seq}


def _asked(step: Step) -> frozenset[str]:
    """What the step's guards take a remainder by, as the code spells it."""
    return frozenset(name for guard in step.guards for name in re.findall(r"% ([A-Za-z_][\w.]*)", guard.text))


def _keys(step: Step) -> frozenset[str]:
    return frozenset().union(*(e.facts.keys for e in step.applied))
