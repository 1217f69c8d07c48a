"""Whether the program moves what the guard of a step counts, or a loop draws it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from galint import program as p
from galint.checks.view import View
from galint.checks.windows import program_nodes
from galint.run.nodes import terminal


def moves(view: View, test: str) -> bool:
    """True when the program itself moves a number of the condition; a base class or a caller may, otherwise.

    What moves it in a function that the run did not enter is such a caller's: `step` of an object that another method counts.
    """
    names = set(re.findall(r"[A-Za-z_]\w*", test))
    outside = {
        id(node)
        for group in view.static.functions.values()
        for func in group
        if id(func) not in view.run.executed
        for node in view.static.walk(func)
    }
    for node in program_nodes(view):
        if id(node) in outside:
            continue
        if isinstance(node, p.For) and names & {n.id for n in target_names(node.target)}:
            return True
        if isinstance(node, p.AugAssign) and terminal(node.target) in names:
            return True
        if isinstance(node, p.Assign) and isinstance(node.value, (p.BinOp, p.IfExp)):
            moved = {terminal(t) for t in node.targets} & set(re.findall(r"[A-Za-z_]\w*", p.text(node.value)))
            if moved & names:
                return True
    return _stands_still(view, names)


def _stands_still(view: View, names: set[str]) -> bool:
    """True when a counter of the condition is a local name that is set to numbers only, and forgotten after that."""
    set_to: dict[str, list[p.Expr]] = {}
    for node in program_nodes(view):
        if isinstance(node, p.Assign):
            for target in node.targets:
                for name in target_names(target):
                    set_to.setdefault(name.id, []).append(node.value)
    given = {a.name for node in program_nodes(view) if isinstance(node, p.FunctionDef) for a in node.params}
    counters = {n for n in names & view.static.counters if n in set_to and n not in given}
    return any(all(isinstance(v, p.Const) for v in set_to[name]) for name in counters)


def target_names(target: p.Expr) -> Iterator[p.Name]:
    """The names that a loop or an assignment binds."""
    if isinstance(target, p.Name):
        yield target
    elif isinstance(target, p.Sequence):
        for item in target.elts:
            yield from target_names(item)
