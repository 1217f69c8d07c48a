"""Micro-batches that a loop leaves out now and then: because there is none, or because an exception said so."""

from __future__ import annotations

from galint import program as p
from galint.run.nodes import terminal, walk
from galint.run.reach import BACKWARD, STEP, ZERO
from galint.run.static import Static

_STEERS = frozenset(
    {"StopIteration", "StopAsyncIteration", "Empty", "Full", "KeyboardInterrupt", "SystemExit", "KeyError"}
)
"""Exceptions by which a loop gets its batches, and that tell nothing of one of them."""


def lacks_batch(stmt: p.If, loop: p.Node | None) -> bool:
    """`if batch is None: continue` in the loop that gives the batch."""
    if not isinstance(loop, p.For) or stmt.orelse or not isinstance(stmt.body[-1], p.Continue):
        return False
    given = {n.id for n in walk(loop.target) if isinstance(n, p.Name)}
    asked = stmt.test.values if isinstance(stmt.test, p.BoolOp) and stmt.test.op == "or" else (stmt.test,)
    return any(
        isinstance(part, p.Compare)
        and part.ops in {("is",), ("==",)}
        and isinstance(part.comparators[0], p.Const)
        and part.comparators[0].value is None
        and any(isinstance(n, p.Name) and n.id in given for n in walk(part.left))
        for part in asked
    )


def skipping(static: Static, stmt: p.Try) -> p.Handler | None:
    """The handler that goes on with the next micro-batch when this one fails (`except RuntimeError: … continue`).

    None where it clears gradients on the way: then the window is given up.
    """
    for handler in stmt.handlers:
        kinds = handler.type.elts if isinstance(handler.type, p.Sequence) else (handler.type,)
        if any(terminal(kind) in _STEERS for kind in kinds) or not leads_to_continue(handler.body):
            continue
        clears = any(
            isinstance(n, p.Attr) and n.name in {"grad", "zero_grad"} for s in handler.body for n in static.walk(s)
        )
        if not clears and not static.body_tags(handler.body) & {BACKWARD, STEP, ZERO}:
            return handler
    return None


def leads_to_continue(body: p.Body) -> bool:
    """Whether a block has a `continue` of the loop around it."""
    return any(
        isinstance(stmt, p.Continue)
        or (isinstance(stmt, p.If) and (leads_to_continue(stmt.body) or leads_to_continue(stmt.orelse)))
        for stmt in body
    )
