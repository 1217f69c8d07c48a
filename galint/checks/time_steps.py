"""Truncated backpropagation through time: the passes of a loop are the steps of a sequence, and no micro-batches."""

from __future__ import annotations

import re
from collections.abc import Iterator

from galint import program as p
from galint.run.names import ONE_WINDOW
from galint.run.nodes import terminal
from galint.run.static import Static

_CUTS = re.compile(r"detach|repackage|\.data\b")
_TOTALS = re.compile(r"loss|total|metric|stat(s|istics)$|log|meter|count", re.I)
"""What passes hand on to add up what they have seen."""
_DRAWS = re.compile(r"^(next|(get|fetch|sample|draw|load|next)_?(micro_?)?batch)$")


def over_time(static: Static, loop: p.For | p.While) -> bool:
    """Whether each pass hands a state on to the next one, which is cut from its graph: `out, h = net(x[:, t], h)`, then
    `h = h.detach()`. The loss of a sequence is the sum over its steps, as it may well be meant.

    A loop that is called accumulation, or draws a batch in each pass, may keep a state all the same.
    """
    if ONE_WINDOW.search(p.text(loop.iter if isinstance(loop, p.For) else loop.test)):
        return False
    nodes = [n for stmt in loop.body for n in static.walk(stmt)]
    if any(isinstance(n, p.Call) and _DRAWS.search(terminal(n.func)) for n in nodes):
        return False
    kept = any(
        isinstance(n, p.Call)
        and terminal(n.func) == "backward"
        and any(a.keyword == "retain_graph" and p.text(a.value) == "True" for a in n.args)
        for n in nodes
    )
    for node in nodes:
        if not isinstance(node, p.Assign) or not isinstance(node.value, p.Call):
            continue
        given = {*map(p.text, _targets(node))}
        given |= {p.text(t) for n in nodes if isinstance(n, p.Assign) and p.text(n.value) in given for t in n.targets}
        for arg in node.value.args:
            state = _whole(arg.value)
            if p.text(state) not in given or _TOTALS.search(p.text(state)):
                continue
            if kept or state is not arg.value or any(n is not node and _cuts(n, static, state) for n in nodes):
                return True
    return False


def _targets(node: p.Assign) -> Iterator[p.Expr]:
    for target in node.targets:
        yield from target.elts if isinstance(target, p.Sequence) else ()
        yield target


def _whole(arg: p.Expr) -> p.Expr:
    """What is handed on, without the cut: `h` of `h.detach()`."""
    if isinstance(arg, p.Call) and isinstance(arg.func, p.Attr) and arg.func.name == "detach":
        return arg.func.value
    return arg


def _cuts(node: p.Node, static: Static, state: p.Expr) -> bool:
    """`h = h.detach()`, `h = repackage(h)`, `h, c = h.detach(), c.detach()`, `h.detach_()`."""
    names = {n.id for n in static.walk(state) if isinstance(n, p.Name)} - {"self"}
    names |= {n.name for n in static.walk(state) if isinstance(n, p.Attr)}
    if isinstance(node, p.Assign):
        return not names.isdisjoint(map(terminal, _targets(node))) and _CUTS.search(p.text(node.value)) is not None
    if isinstance(node, p.Call) and isinstance(node.func, p.Attr) and node.func.name == "detach_":
        return terminal(node.func.value) in names
    return False
