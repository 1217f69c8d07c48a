"""What a program's learning rate has to do with N: a rate divided by N makes up for a sum of mean losses."""

from __future__ import annotations

import re
from enum import Enum

from galint import program as p
from galint.checks.view import View
from galint.run.nodes import terminal

_RATE = re.compile(r"(^|_)(lr\d?|learning_?rate)(_|$)|base_lr", re.I)
_COURSE = re.compile(r"sched|steps|iters|epochs|warm", re.I)


class Rate(Enum):
    """How N enters the learning rate, as far as the text shows."""

    FREE = "N does not enter it"
    GROWS = "it is multiplied with N: linear scaling (Goyal et al. 2017), for a mean over the larger batch"
    MAKES_UP = "it is divided by N, or the weight decay is scaled with N: sums are meant"


def rate(view: View, keys: frozenset[str]) -> Rate:
    """How N, spelled in one of these ways, enters what is assigned to a learning rate, also by way of a batch size."""
    last = {re.findall(r"[A-Za-z_]\w*", key)[-1] for key in keys if re.search(r"[A-Za-z_]", key)} | view.static.divisors
    out = Rate.FREE
    assignments = _assignments(view)
    last |= {terminal(a.targets[0]) for a in assignments if isinstance(a, p.Assign) and _gives(a.value, last)} - {""}
    for _ in range(2):
        found: set[str] = set()
        for node in assignments:
            target = terminal(node.targets[0] if isinstance(node, p.Assign) else node.target)
            if not _words(view, node.value) & last or _COURSE.search(target):
                continue
            if "weight_decay" in target:
                return Rate.MAKES_UP
            if _RATE.search(target):
                if _divisors(view, node) & last:
                    return Rate.MAKES_UP
                out = Rate.GROWS
            elif "batch" in target:
                found.add(target)
        if not found - last:
            break
        last |= found
    return out


def _gives(value: p.Expr, names: set[str]) -> bool:
    """Whether a value is one of some settings and nothing more: `accum = args.accum`."""
    return isinstance(value, (p.Name, p.Attr, p.Subscript)) and terminal(value) in names


def _assignments(view: View) -> list[p.Assign | p.AugAssign]:
    return [
        node
        for body in view.static.bodies
        for stmt in body
        for node in view.static.walk(stmt)
        if isinstance(node, (p.Assign, p.AugAssign))
    ]


def _words(view: View, value: p.Node) -> set[str]:
    return {terminal(n) for n in view.static.walk(value) if isinstance(n, (p.Name, p.Attr, p.Subscript))}


def _divisors(view: View, node: p.Assign | p.AugAssign) -> set[str]:
    """Names that stand below a division in what is assigned."""
    out = _words(view, node.value) if isinstance(node, p.AugAssign) and node.op.startswith("/") else set()
    for part in view.static.walk(node.value):
        if isinstance(part, p.BinOp) and part.op in ("/", "//"):
            out |= _words(view, part.right)
    return out
