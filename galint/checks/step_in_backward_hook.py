"""GA105: a hook steps the optimizer inside backward, so nothing can accumulate."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction

from galint import program as p
from galint.checks.finding import Finding
from galint.checks.view import View
from galint.checks.windows import calls
from galint.run.nodes import terminal

CODE = "GA105"
WITNESS = "even"


def check(view: View) -> Iterator[Finding]:
    """A gradient hook that steps, in a program whose backwards come N to an update, divided by N."""
    count = _micros(view)
    if count < 2:
        return
    for call in calls(view):
        if terminal(call.func) != "register_post_accumulate_grad_hook" or not call.args:
            continue
        if not any(_steps(view, node) for node in _bodies(view, call.args[0].value)):
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
