"""Guards under which backward runs once, on a sum of the losses of a window."""

from __future__ import annotations

from galint import program as p
from galint.run.nodes import terminal
from galint.run.reach import STEP
from galint.run.static import Static


def sums(static: Static, node: p.If) -> bool:
    """True for the guard of a step under which backward runs on a sum of losses that is divided by the guard's N.

    A sum that is divided by nothing may be meant as one: steps through time, an episode. So may one beside other steps.
    """
    counts = {p.text(n.right) for n in static.walk(node.test) if isinstance(n, p.BinOp) and n.op == "%"}
    within = [n for stmt in node.body for n in static.walk(stmt)] if counts else []
    ran = [n for n in within if isinstance(n, p.Call) and terminal(n.func) == "backward"]
    if not ran:
        return False
    anew = {
        terminal(t)
        for n in within
        if isinstance(n, p.Assign) and isinstance(n.value, p.Const) and not n.value.value
        for t in n.targets
    }
    grown, divided = set(), False
    for n in static.everything():
        if isinstance(n, p.AugAssign):
            grown |= {terminal(n.target)} if n.op == "+" else set()
            divided = divided or (n.op == "/" and p.text(n.value) in counts)
        elif isinstance(n, p.BinOp):
            divided = divided or (n.op == "/" and p.text(n.right) in counts)
    if not divided or not any(anew & grown & set(static.names_in(call)) for call in ran):
        return False
    homes = [f for group in static.functions.values() for f in group if static.holds(f, node)]
    calls = {n for home in homes for n in static.walk(home) if isinstance(n, p.Call)} - set(within)
    return not any(STEP in static.tags(call) for call in calls)
