"""GA203: the division happens after backward, where it changes only the log."""

from __future__ import annotations

from collections.abc import Iterator

from galint.checks.finding import Finding
from galint.checks.late_scaling import late_divisions
from galint.checks.scaling import scalings
from galint.checks.view import View
from galint.source import Span

CODE = "GA203"
WITNESS = "even"


def check(view: View) -> Iterator[Finding]:
    """An unscaled loss that is divided by N once its backward is over."""
    late = late_divisions(view)
    seen: set[Span] = set()
    for scaling in scalings(view):
        found = late.get(scaling.backward.span)
        if found is None or not scaling.unscaled or found[0] in seen:
            continue
        seen.add(found[0])
        yield Finding(
            CODE,
            found[0],
            f"`{found[1]}` is divided after its backward, so the applied gradient stays {scaling.count} times the large batch's",
            step=scaling.step,
            window=scaling.count,
            related=((scaling.backward.span, "backward ran here, on the undivided loss"), *view.places(scaling.step)),
            assumptions=scaling.assumptions,
        )
