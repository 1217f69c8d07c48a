"""The abstract run's own sequence of gradient events, as a straight program over real torch."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from galint.ledger import Coefficient, Entry, OptimizerLedger
from galint.run.facts import RunResult
from galint.trace.stage.expressions import STAGE

MOST_STEPS = 8


@dataclass(slots=True)
class Operation:
    """One gradient event of one optimizer (-1: all), at the user's row."""

    seq: int
    kind: str
    row: int
    optimizer: int = -1
    data: tuple[Any, ...] = ()


def operations(run: RunResult) -> list[Operation]:
    """The events of a run in order: backward, clear, unscale, clip, update, step, rescale."""
    out: list[Operation] = []
    names = list(run.ledgers)
    reached: dict[int, set[int]] = {}
    entries: dict[int, dict[int, Entry]] = {}
    for index, name in enumerate(names):
        for entry in _entries(run.ledgers[name]):
            reached.setdefault(entry.seq, set()).add(index)
            entries.setdefault(entry.seq, {}).setdefault(entry.micro, entry)
        for mark in _marks(run.ledgers[name]):
            out.append(Operation(mark[0], mark[1], mark[2], index))
        for step in run.ledgers[name].steps:
            out.append(Operation(step.seq, "step", step.span.row, index, (step.unscaled_here,)))
    known = {k: Fraction(v) for k, v in run.known.items() if isinstance(v, int | Fraction) and v}
    for fact in run.backwards:
        micros = entries.get(fact.seq)
        if not micros:
            continue
        first = next(iter(micros.values()))
        for micro in micros:
            synced = all(flag for _, flag in fact.facts.synced)
            bypassed = bool(fact.facts.bypassed)
            # A factor that had no number yet at this backward has one by the end of the run.
            term = (first.facts.terms[-1] if first.facts.terms else first.coefficient).substitute(known)
            coefficient = float(_value(term))
            data = (micro, coefficient, fact.scaled, synced, bypassed, tuple(sorted(reached.get(fact.seq, ()))))
            out.append(Operation(fact.seq, "backward", fact.span.row, -1, data))
    for event in run.events:
        if event.kind == "rescale":
            out.append(Operation(event.seq, "rescale", event.span.row, -1, (_factor(event.text),)))
        elif event.kind == "scaler_update":
            out.append(Operation(event.seq, "update", event.span.row))
    out.sort(key=lambda o: o.seq)
    return _cut(out)


def _cut(found: list[Operation]) -> list[Operation]:
    steps = 0
    for index, operation in enumerate(found):
        steps += operation.kind == "step"
        if steps > MOST_STEPS * 2:
            return found[:index]
    return found


def _entries(ledger: OptimizerLedger) -> list[Entry]:
    out = [e for s in ledger.steps for e in (*s.applied, *s.carried, *(x for x, _ in s.lost))]
    return out + list(ledger.pending) + [e for e, _ in ledger.lost]


def _marks(ledger: OptimizerLedger) -> list[tuple[int, str, int]]:
    marks = [m for s in ledger.steps for m in s.marks] + list(ledger.marks)
    return [(m.seq, m.kind, m.span.row) for m in marks if m.kind in {"clear", "unscale", "clip"}]


def _value(coefficient: Coefficient) -> Fraction:
    return coefficient.value if coefficient.value else Fraction(1)


def _factor(text: str) -> float:
    try:
        return float(Fraction(text.split("·")[0]))
    except (ValueError, ZeroDivisionError):
        return 1.0


def program(found: list[Operation]) -> ast.Module:
    """A call of the stage for each operation, at its row."""
    body: list[ast.stmt] = []
    for number, operation in enumerate(found):
        call = ast.Call(ast.Attribute(ast.Name(STAGE, ast.Load()), "play", ast.Load()), [ast.Constant(number)], [])
        statement = ast.Expr(call)
        for node in ast.walk(statement):
            if "lineno" in getattr(node, "_attributes", ()):
                node.lineno = node.end_lineno = max(operation.row, 1)  # type: ignore[attr-defined]
                node.col_offset, node.end_col_offset = 0, 0  # type: ignore[attr-defined]
        body.append(statement)
    return ast.Module(body, [])
