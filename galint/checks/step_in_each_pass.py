"""A step in each pass of the loop over a window's micro-batches, as GA401 asks it."""

from __future__ import annotations

from collections.abc import Iterator

from galint import program as p
from galint.checks.scaling import loop_around
from galint.checks.view import View
from galint.ledger import Step
from galint.run.nodes import path_terminal, terminal


def steps_in_each_pass(view: View) -> Iterator[tuple[Step, str]]:
    """Steps on each micro-batch of `for _ in range(N)` whose loss is divided by that N, and how N is spelled.

    Nothing but a window of N can be meant by both; Accelerate's own count waits by itself and is left out.
    """
    for ledger in view.ledgers:
        steps = view.steps(ledger)
        alone = [s for s in steps if len(view.window(s)) == 1 and len(s.applied) == 1]
        if len(alone) < 4 or len(alone) != len(steps) or any(g.moduli for s in steps for g in s.guards):
            continue
        if getattr(view.run.optimizers.get(ledger.name), "engine", None) is not None:
            continue  # which counts by itself
        entry = alone[1].applied[0]
        micro = view.micro(entry.micro)
        loop = loop_around(view, entry.micro)
        call = loop.iter if isinstance(loop, p.For) else None
        if (
            micro is None
            or not isinstance(call, p.Call)
            or terminal(call.func) not in {"range", "trange"}
            or len(call.args) != 1
        ):
            continue
        assert isinstance(loop, p.For)
        inside = {n for s in loop.body for n in view.static.walk(s)}
        if not any(isinstance(n, p.Call) and n.span == alone[1].span for n in inside):
            continue
        weight, bound = view.coefficient(entry).value, call.args[0].value
        name = terminal(bound)
        passes = sum(m.serial == micro.serial for m in view.run.micros.values())
        if name and weight * passes == 1 and name in {path_terminal(key) for key in entry.facts.keys}:
            yield alone[1], p.text(bound)
