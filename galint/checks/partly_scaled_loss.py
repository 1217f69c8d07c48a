"""GA204: one term of the loss is divided by N, another is not."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from galint.checks.finding import Finding
from galint.checks.scaling import names_n
from galint.checks.view import View
from galint.checks.windows import divides_by, first_of_each, full_windows
from galint.source import Span

CODE = "GA204"
WITNESS = "even"


def check(view: View) -> Iterator[Finding]:
    """A backward whose addends carry both 1/N and a coefficient without it."""
    seen: set[Span] = set()
    orders = {b.span: b.order for b in view.run.backwards}
    for window in full_windows(view):
        n = window.n
        if len(window.micros) != n or window.automatic:
            continue
        keys = view.n_keys(window.ledger)
        for entry in first_of_each(window.step):
            facts = entry.facts
            terms = {c.substitute(view.known) for c in facts.terms}
            divided = [c for c in terms if c.value == Fraction(1, n)]
            whole = [c for c in terms if abs(c.value) == 1 and not any(names_n(view, s, keys) for s, _ in c.symbols)]
            if entry.span in seen or not divided or not whole or facts.summed or orders.get(entry.span, 1) > 1:
                continue
            if "?" in facts.hidden or any(names_n(view, key, keys) for key in facts.hidden):
                continue
            if window.literal and not divides_by(view, n, facts.keys | {window.label}):
                continue
            seen.add(entry.span)
            yield Finding(
                CODE,
                entry.span,
                f"only {len(divided)} of {len(divided) + len(whole)} terms of the loss are divided by {window.named}: "
                f"the others weigh {n} times as much as in the large batch",
                step=window.step,
                window=n,
                related=view.places(window.step),
            )
