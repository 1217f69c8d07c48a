"""What stands on one side of a branch, and what a condition about a number gates."""

from __future__ import annotations

import re

from galint import program as p
from galint.run.nodes import terminal
from galint.run.reach import BACKWARD, STEP
from galint.run.static import Static
from galint.run.values import Lit, Seq, Value

_RESUMES = re.compile(r"\b(exists|is_?file)\(|resum|checkpoint|ckpt", re.I)
"""What asks for a checkpoint to go on from."""


def resumes(stmt: p.If, static: Static) -> bool:
    """Whether a condition's first side takes up an earlier training."""
    if terminal(stmt.test).startswith("continue_"):
        return True
    return bool(_RESUMES.search(p.text(stmt.test))) and _loads(stmt.body, static) > _loads(stmt.orelse, static)


def _loads(body: p.Body, static: Static) -> bool:
    """Whether a block gives something a state that was saved."""
    return any(terminal(n.func) == "load_state_dict" for s in body for n in static.walk(s) if isinstance(n, p.Call))


def names_a_thing(stmt: p.Stmt) -> bool:
    """`penalty = l1`, `noise = Noise(model)`: what other conditions may ask for."""
    return (
        isinstance(stmt, p.Assign) and isinstance(stmt.targets[0], p.Name) and isinstance(stmt.value, (p.Name, p.Call))
    )


def makes_nothing(body: p.Body) -> bool:
    """A branch that only sets names to None, where the other one makes something."""
    return all(
        isinstance(s, p.Assign) and isinstance(s.value, p.Const) and s.value.value is None and not s.value.ellipsis
        for s in body
    )


def gates(body: frozenset[str], orelse: frozenset[str], rest: frozenset[str] | None) -> bool:
    """Whether a condition gates the step and not the training itself.

    `rest` are the tags of what follows when the body leaves the block. A branch that holds both backward and step is
    a schedule (a critic, a Hessian estimate), unless the other branch runs backward too and does not step.
    """
    if rest is not None and STEP not in body | orelse:
        return BACKWARD not in rest
    for one, other in ((body, orelse), (orelse, body)):
        if STEP in one and STEP not in other:
            return BACKWARD not in one or BACKWARD in other
    return not (body | orelse) & {STEP}


def steps_first(body: p.Body, static: Static) -> bool:
    """Whether a side of a branch steps before it runs a backward: what it steps was accumulated elsewhere.

    The backward may be another network's, which learns once in a window of this one.
    """
    for stmt in body:
        tags = static.tags(stmt)
        if tags & {BACKWARD, STEP}:
            return BACKWARD not in tags
    return False


def without_remainder(node: p.If, static: Static) -> p.Body:
    """What runs otherwise, less the `elif`s that wait for the very remainder: `if a and i % n == 0: … elif b and i % n == 0:`."""
    waits = remainders(node.test, static)
    orelse = node.orelse
    while len(orelse) == 1 and isinstance(orelse[0], p.If) and waits & remainders(orelse[0].test, static):
        orelse = orelse[0].orelse
    return orelse


def remainders(test: p.Expr, static: Static) -> set[str]:
    """The spellings of the remainders that a condition asks for."""
    return {p.text(n) for n in static.walk(test) if isinstance(n, p.BinOp) and n.op == "%"}


def moduli_in(value: Value) -> tuple[tuple[str, int], ...]:
    """The numbers that what is matched was divided by."""
    if isinstance(value, Lit):
        return value.moduli
    if isinstance(value, Seq):
        return tuple(m for v in value.elts for m in moduli_in(v))
    return ()
