"""GA204: one term of the loss is divided by N, another is not."""

from __future__ import annotations

import re
from collections.abc import Iterator
from fractions import Fraction

from galint.checks.finding import Finding
from galint.checks.scaling import names_n
from galint.checks.view import View
from galint.checks.windows import Window, divides_by, full_windows
from galint.ledger import ONE, Coefficient, Entry
from galint.source import Span

CODE = "GA204"
WITNESS = "even"


def _parts(
    view: View, entry: Entry, n: int, keys: frozenset[str], literal: bool
) -> tuple[list[Coefficient], list[Coefficient]]:
    """The weights of the addends that are divided by N, and of those that no spelling of N ever touched.

    Where N is a literal, a number such as 0.5 may be meant as a share of it.
    """
    divided, whole = [], []
    kept = entry.facts.term_keys or (frozenset(),) * len(entry.facts.terms)
    for weight, own in zip(entry.facts.terms, kept, strict=False):
        value = weight.substitute(view.known)
        touched = any(names_n(view, key, keys) for key in (*own, *(s for s, _ in value.symbols)))
        share = value.value == Fraction(1, n) and (literal or touched)  # 0.25 is an Nth of four by chance
        if share or (own & keys and abs(value.value) < 1):
            divided.append(value)
        elif not touched and (abs(value.value) == 1 or (not literal and value.value != 0)):
            whole.append(value)
    for path, own in entry.facts.penalties:
        if str(n) not in own and not any(names_n(view, key, keys) for key in (*own, path)):
            whole.append(ONE.times_symbol(path, 1))
    return divided, whole


def check(view: View) -> Iterator[Finding]:
    """A backward whose addends carry both 1/N and a coefficient without it."""
    seen: set[Span] = set()
    orders = {b.span: b.order for b in view.run.backwards}
    for window in full_windows(view):
        n = window.n
        if len(window.micros) != n or window.automatic:
            continue
        keys = view.n_keys(window.ledger)
        for entry in window.step.first_of_each():
            facts = entry.facts
            divided, whole = _parts(view, entry, n, keys, window.literal)
            if entry.span in seen or not divided or not whole or facts.summed or orders.get(entry.span, 1) > 1:
                continue
            if "?" in facts.hidden or any(names_n(view, key, keys) for key in facts.hidden):
                continue
            if window.literal and not divides_by(view, n, facts.keys | {window.label} | _asked(window)):
                continue
            seen.add(entry.span)
            yield Finding(
                CODE,
                entry.span,
                f"only {len(divided)} of {len(divided) + len(whole)} terms of the loss "
                f"{'is' if len(divided) == 1 else 'are'} divided by {window.named}: "
                f"the others weigh {n} times as much as in the large batch",
                step=window.step,
                window=n,
                related=view.places(window.step),
            )


def _asked(window: Window) -> frozenset[str]:
    """What the step's guards divide by, as they spell it: a parameter that the caller gave the number."""
    texts = [guard.text for guard in window.step.guards]
    return frozenset(name for text in texts for name in re.findall(r"%\s*([A-Za-z_][\w.]*)", text))
