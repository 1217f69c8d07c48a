"""GA201: N mean losses are summed without 1/N."""

from __future__ import annotations

import re
from collections.abc import Iterator
from fractions import Fraction

from galint import program as p
from galint.checks.cached_gradients import multiplies_gradient
from galint.checks.feature_cache import caches_features
from galint.checks.finding import Finding
from galint.checks.late_scaling import late_divisions
from galint.checks.scaling import Scaling, scalings
from galint.checks.view import View
from galint.checks.windows import calls
from galint.ledger import ONE, formula, unsigned
from galint.run.nodes import terminal
from galint.source import Span

CODE = "GA201"
WITNESS = "even"
_COUNT = re.compile(r"n_?tok|num_?tok|tokens|n_?samples|num_?samples|n_?valid|num_?valid|numel\(|\blen\(|count", re.I)


def check(view: View) -> Iterator[Finding]:
    """Windows of several micro-batches whose every coefficient is free of N."""
    late = late_divisions(view)
    reported: set[Span] = set()
    for scaling in scalings(view):
        if not scaling.unscaled or scaling.backward.span in reported or scaling.backward.span in late:
            continue
        if caches_features(view):
            return
        if multiplies_gradient(view, scaling.backward.span):
            continue
        if _counted_elsewhere(view, scaling.backward.span) or _left_to_subclasses(view, scaling.backward.span):
            continue
        reported.add(scaling.backward.span)
        yield _finding(view, scaling)


def _counted_elsewhere(view: View, backward: Span) -> bool:
    """Whether another backward divides the very same loss by a count of samples or tokens: then the loss is their sum."""
    found = {c.span: c.func for c in calls(view) if isinstance(c.func, p.Attr) and c.func.name == "backward"}
    if backward not in found:
        return False
    spelled = {p.text(n) for n in view.static.walk(found[backward]) if isinstance(n, (p.Name, p.Attr, p.Subscript))}
    return any(
        isinstance(n, p.BinOp) and n.op == "/" and p.text(n.left) in spelled and _COUNT.search(p.text(n.right))
        for span, func in found.items()
        if span != backward
        for n in view.static.walk(func)
    )


def _left_to_subclasses(view: View, backward: Span) -> bool:
    """Whether a hook without a body makes the loss, with a loss function that the caller hands in: neither is in sight."""
    call = next((c for c in calls(view) if c.span == backward), None)
    root = call.func.value if call is not None and isinstance(call.func, p.Attr) else None
    if not isinstance(root, p.Name):
        return False
    for function in (f for group in view.static.functions.values() for f in group):
        nodes = [*view.static.walk(function)]
        given = {q.name for q in function.params if "loss" in q.name}
        if not given or call not in nodes:
            continue
        for made in (n for n in nodes if isinstance(n, p.Assign) and isinstance(n.value, p.Call)):
            names = {n.id for t in made.targets for n in view.static.walk(t) if isinstance(n, p.Name)}
            assert isinstance(made.value, p.Call)
            handed = {a.value.id for a in made.value.args if isinstance(a.value, p.Name)}
            hooks = view.static.functions.get(terminal(made.value.func), ())
            if root.id in names and handed & given and any(isinstance(s, p.Raise) for h in hooks for s in h.body):
                return True
    return False


def _finding(view: View, scaling: Scaling) -> Finding:
    n = scaling.count
    name = f"`{scaling.label}` = {n}" if scaling.label and not scaling.label.isdigit() else str(n)
    weights = view.weights(scaling.step)
    own = next(iter(weights.values()), ONE)
    # What every loss is weighed with belongs to the large batch's loss too.
    weighed = bool(own.symbols) and set(weights.values()) == {own}
    outcome = f"the applied gradient is {n} times the large batch's"
    if scaling.waits:
        outcome = f"once a step applies them, it applies {n} times the large batch's gradient"
    return Finding(
        CODE,
        scaling.backward.span,
        f"the losses of {name} micro-batches are summed without 1/N: {outcome}",
        step=scaling.step,
        window=n,
        related=view.places(scaling.step),
        assumptions=scaling.assumptions,
        expected=formula(unsigned({k: own.times(Fraction(1, n)) for k in range(1, n + 1)})) if weighed else None,
    )
