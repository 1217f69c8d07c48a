"""GA201: N mean losses are summed without 1/N."""

from __future__ import annotations

from collections.abc import Iterator

from galint.checks.feature_cache import caches_features
from galint.checks.finding import Finding
from galint.checks.scaling import Scaling, late_divisions, scalings
from galint.checks.view import View
from galint.source import Span

CODE = "GA201"
WITNESS = "even"


def check(view: View) -> Iterator[Finding]:
    """Windows of several micro-batches whose every coefficient is free of N."""
    late = late_divisions(view)
    reported: set[Span] = set()
    for scaling in scalings(view):
        if not scaling.unscaled or scaling.backward.span in reported or scaling.backward.span in late:
            continue
        if caches_features(view):
            return
        reported.add(scaling.backward.span)
        yield _finding(view, scaling)


def _finding(view: View, scaling: Scaling) -> Finding:
    n = scaling.count
    name = f"`{scaling.label}` = {n}" if scaling.label and not scaling.label.isdigit() else str(n)
    return Finding(
        CODE,
        scaling.backward.span,
        f"the losses of {name} micro-batches are summed without 1/N: the applied gradient is {n} times the large batch's",
        step=scaling.step,
        window=n,
        related=view.places(scaling.step),
        assumptions=scaling.assumptions,
    )
