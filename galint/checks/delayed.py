"""Delayed updates (TD3, SAC) and optimizers that take turns: each step takes the one fresh gradient of its pass."""

from __future__ import annotations

from galint.checks.view import View
from galint.ledger import OptimizerLedger, Step


def is_delayed(view: View, ledger: OptimizerLedger) -> bool:
    """Whether an optimizer's steps apply the last micro-batch's whole gradient each, while another steps on every one.

    The gradients between are cleared on purpose: no loss is divided by N, and nothing accumulates.
    """
    if _take_turns(view):
        return True
    cadence = view.cadence(ledger)
    steps = view.steps(ledger)
    if cadence is None or cadence.n < 2 or len(steps) < 2:
        return False
    entries = [e for s in steps for e in s.applied]
    if not all(map(_takes_the_last, steps)):
        return False
    keys = view.n_keys(ledger)
    if any(abs(view.coefficient(e).value) * cadence.n == 1 or keys & (e.facts.keys | e.facts.hidden) for e in entries):
        return False
    loops = {view.top_of(s.window[-1]) for s in steps if s.window}
    for other in view.ledgers:
        theirs = view.steps(other)
        ahead = len(theirs) > (len(steps) - 1) * cadence.n - 1
        if other is not ledger and ahead and view.cadence(other) is None:
            if all(map(_takes_the_last, theirs)):
                return loops == {view.top_of(s.window[-1]) for s in theirs if s.window}
    return False


def _takes_the_last(step: Step) -> bool:
    """Whether a step applies its window's last micro-batch and no other."""
    return not step.window or {e.micro for e in step.applied} == {step.window[-1]}


def _take_turns(view: View) -> bool:
    """Whether one of several optimizers steps on every micro-batch, with that micro-batch's whole gradient and nothing else."""
    known: bool | None = view.run.facts.get("take turns")
    if known is None:
        known = view.run.facts["take turns"] = _each_has_its_step(view)
    return known


def _each_has_its_step(view: View) -> bool:
    stepping = [ledger for ledger in view.ledgers if ledger.steps]
    if len(stepping) < 2:
        return False
    taken: list[int] = []
    for ledger in stepping:
        for step in (s for s in view.steps(ledger) if s.window):
            if not _takes_the_last(step):
                return False
            if any(view.coefficient(e).symbols or abs(view.coefficient(e).value) != 1 for e in step.applied):
                return False
            taken.append(step.window[-1])
    ran = {b.micro for b in view.run.backwards}
    return len(taken) == len(set(taken)) and len(ran - set(taken)) <= 1
