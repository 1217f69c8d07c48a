"""Conditions that ask whether it is time to train: a loop's own number below a bound, enough of what was collected."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from galint import program as p
from galint.run.nodes import terminal
from galint.run.reach import BACKWARD, STEP, Reach


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


def ready_to_train(stmt: p.If, reach: Reach, rest_tags: Collection[str], divisors: Collection[str]) -> bool | None:
    """The outcome under which a condition on amounts leads to a backward: `if len(memory) > 5000:`; None for any other.

    `divisors` are the names of N: a condition on it chooses a way to train, and waits for nothing.
    """
    body, orelse, _ = reach.branches(stmt)
    now, later = BACKWARD in body, BACKWARD in orelse or BACKWARD in rest_tags
    if now is later:
        return None
    nodes = [*reach.walk(stmt.test)]
    if any(terminal(n) in divisors for n in nodes if isinstance(n, (p.Name, p.Attr))):
        return None
    compares = any(isinstance(n, p.Compare) and {"<", "<=", ">", ">="} & {*n.ops} for n in nodes)
    return now if compares and not any(isinstance(n, p.BinOp) and n.op == "%" for n in nodes) else None


def _given(reach: Reach) -> frozenset[str]:
    return reach.once("loop names", lambda: frozenset(_names(reach)))


def _names(reach: Reach) -> Iterator[str]:
    for node in reach.everything():
        if isinstance(node, p.For):
            yield from (n.id for n in reach.walk(node.target) if isinstance(n, p.Name))


def asks_for_windows(node: p.Node | None, reach: Reach) -> bool:
    """Whether a condition leads to a loop of micro-batches: it says which windows train, and not how many make one."""
    body = node.body if isinstance(node, p.If) else ()
    return any(isinstance(s, (p.For, p.While)) and BACKWARD in reach.tags(s) for s in body)
