"""GA105: a hook steps the optimizer inside backward, so nothing can accumulate."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction

from galint import program as p
from galint.checks.finding import Finding
from galint.checks.view import View
from galint.checks.windows import calls, program_nodes
from galint.run.nodes import path_terminal, raises, terminal

CODE = "GA105"
WITNESS = "even"
_ONE = {("==", 1), ("!=", 1), (">", 1), ("<=", 1), ("<", 2), (">=", 2)}
"""Comparisons of N that ask whether there is accumulation at all."""


def check(view: View) -> Iterator[Finding]:
    """A gradient hook that steps, in a program whose backwards come N to an update, divided by N."""
    hooks = [c for c in calls(view) if terminal(c.func) == "register_post_accumulate_grad_hook" and c.args]
    if not hooks:
        return
    whole = _micros(view)
    for call in hooks:
        bodies = [*_bodies(view, call.args[0].value)]
        count = whole if any(_steps(view, node) for node in bodies) else 0
        count = count or _counted(view, bodies)
        if count < 2:
            continue
        yield Finding(
            CODE,
            call.span,
            f"this hook steps inside each backward, so the {count} micro-batches of a window are applied one by one, "
            f"each divided by {count}, and none accumulates",
            window=count,
            related=((view.run.backwards[0].span, "each of these backwards steps the optimizer"),),
        )


def _micros(view: View) -> int:
    """N: how many backwards of one run of a loop carry 1/N; 0 where a step belongs to the loop itself."""
    if any(len(view.window(s)) > 1 for ledger in view.ledgers for s in view.steps(ledger)):
        return 0
    runs = Counter((b.where[-1][0], b.where[-1][1]) for b in view.run.backwards if b.where)
    for fact in view.run.backwards:
        if not fact.where or not fact.facts.terms:
            continue
        share = fact.facts.terms[0].substitute(view.known)
        count = runs[fact.where[-1][0], fact.where[-1][1]]
        if not share.symbols and share.value == Fraction(1, count) and count > 1:
            return count
    return 0


def _counted(view: View, bodies: list[p.Node]) -> int:
    """N: what the losses are divided by and micro-batches are counted by, where every step is one of the hook's."""
    inside = {node.span for body in bodies for node in view.static.walk(body)}
    steps = [step for ledger in view.ledgers for step in view.steps(ledger)]
    if not steps or any(step.span not in inside or len(set(step.window)) > 1 for step in steps):
        return 0
    numbers = {Fraction(v) for e in view.guard_events for _, v in e.data["moduli"] if isinstance(v, int)}
    numbers |= {view.known[key] for key, role in view.run.roles.items() if role == "window" and key in view.known}
    for fact in view.run.backwards:
        shares = [c.substitute(view.known) for c in fact.facts.terms[:1]]
        for n in numbers:
            if n > 1 and any(not share.symbols and share.value * n == 1 for share in shares):
                return 0 if _refused(view, fact.facts.keys) else int(n)
    return 0


def _refused(view: View, keys: frozenset[str]) -> bool:
    """Whether the program checks that N is one: `if args.fused and args.accumulation > 1: raise`."""
    names = {path_terminal(key) for key in keys} - {""}
    for node in program_nodes(view):
        if not (isinstance(node, p.Assert) or (isinstance(node, p.If) and raises(node.body))):
            continue
        for part in view.static.walk(node.test):
            if isinstance(part, p.Compare) and len(part.ops) == 1 and terminal(part.left) in names:
                bound = part.comparators[0]
                if isinstance(bound, p.Const) and (part.ops[0], bound.value) in _ONE:
                    return True
    return False


def _bodies(view: View, hook: p.Expr) -> Iterator[p.Node]:
    """What a hook runs: a lambda, a function of the file, or the function that made it."""
    if isinstance(hook, p.Lambda):
        yield hook.body
        return
    name = terminal(hook.func) if isinstance(hook, p.Call) else terminal(hook)
    yield from view.static.functions.get(name, ())


def _steps(view: View, node: p.Node) -> bool:
    """True when an optimizer's `step` is called in it."""
    return any(
        isinstance(n, p.Call)
        and isinstance(n.func, p.Attr)
        and n.func.name == "step"
        and re.search("opt", p.text(n.func), re.I)
        for n in view.static.walk(node)
    )
