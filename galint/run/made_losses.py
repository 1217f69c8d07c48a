"""Loops over losses: what they are given is ready for its backward."""

from __future__ import annotations

from typing import TYPE_CHECKING

from galint import program as p
from galint.run.nodes import terminal

if TYPE_CHECKING:
    from galint.run.static import Static

_STARTS = frozenset({"backward", "manual_backward"})
_SCALES = frozenset({"scale", "scale_loss", "mean", "sum", "div", "div_", "mul", "mul_", *_STARTS})
"""Calls between a loss and its backward."""


def starts_from(loop: p.For, static: Static) -> bool:
    """`for loss in losses: (loss / n).backward()`: whether the backward of a pass starts from the loop's own variable."""
    if isinstance(loop.iter, p.Call) and terminal(loop.iter.func) in {"range", "trange"}:
        return False
    names = static.given(loop)
    found = False
    for node in (n for stmt in loop.body for n in static.walk(stmt)):
        if isinstance(node, p.Assign) and _calls(static, node.value):
            if names & {terminal(t) for t in node.targets}:
                return False
        elif isinstance(node, p.Call) and terminal(node.func) in _STARTS:
            started = {n.id for n in static.walk(node) if isinstance(n, p.Name)}
            if not started & names or _calls(static, node):
                return False
            found = True
    return found


def _calls(static: Static, expr: p.Expr) -> bool:
    """Whether an expression calls anything that does more than scale."""
    return any(isinstance(n, p.Call) and terminal(n.func) not in _SCALES for n in static.walk(expr))
