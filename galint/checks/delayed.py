"""Delayed updates (TD3, SAC): an optimizer takes one fresh gradient at every so many steps of another."""

from __future__ import annotations

from galint.checks.view import View
from galint.ledger import OptimizerLedger


def is_delayed(view: View, ledger: OptimizerLedger) -> bool:
    """Whether an optimizer's steps apply the last micro-batch's whole gradient each, while another steps on every one.

    The gradients between are cleared on purpose: no loss is divided by N, and nothing accumulates.
    """
    cadence = view.cadence(ledger)
    steps = view.steps(ledger)
    if cadence is None or cadence.n < 2 or len(steps) < 2:
        return False
    entries = [e for s in steps for e in s.applied]
    if any({e.micro for e in s.applied} != {s.window[-1]} for s in steps if s.window):
        return False
    keys = view.n_keys(ledger)
    if any(abs(view.coefficient(e).value) * cadence.n == 1 or keys & (e.facts.keys | e.facts.hidden) for e in entries):
        return False
    loops = {view.top_of(s.window[-1]) for s in steps if s.window}
    for other in view.ledgers:
        theirs = view.steps(other)
        ahead = len(theirs) > (len(steps) - 1) * cadence.n - 1
        if other is not ledger and ahead and view.cadence(other) is None:
            if all(len(s.applied) and {e.micro for e in s.applied} == {s.window[-1]} for s in theirs if s.window):
                return loops == {view.top_of(s.window[-1]) for s in theirs if s.window}
    return False
