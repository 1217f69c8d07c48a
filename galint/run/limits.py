"""Which conditions of a step ask only whether training goes on: a loop's own number below a bound."""

from __future__ import annotations

from collections.abc import Iterator

from galint import program as p
from galint.run.reach import STEP, Reach


def limits_in(stmt: p.If, reach: Reach) -> Iterator[p.Compare]:
    """The comparisons under which a step is taken in a loop's first passes, and in no later one.

    `if iteration < total: step` leaves out the last pass. A counter that has reached N is at or above a number.
    """
    if STEP not in reach.body_tags(stmt.body) or STEP in reach.body_tags(stmt.orelse):
        return
    for node in reach.walk(stmt.test):
        if isinstance(node, p.Compare) and len(node.ops) == 1 and node.ops[0] in {"<", "<=", ">", ">="}:
            low = node.left if node.ops[0][0] == "<" else node.comparators[0]
            if isinstance(low, p.Name) and low.id in _given(reach):
                yield node


def _given(reach: Reach) -> frozenset[str]:
    return reach.once("loop names", lambda: frozenset(_names(reach)))


def _names(reach: Reach) -> Iterator[str]:
    for node in reach.everything():
        if isinstance(node, p.For):
            yield from (n.id for n in reach.walk(node.target) if isinstance(n, p.Name))
