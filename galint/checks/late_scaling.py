"""Losses that are divided after their backward, as GA201 and GA203 ask it."""

from __future__ import annotations

from galint.checks.scaling import names_n
from galint.checks.view import View
from galint.source import Span


def late_divisions(view: View) -> dict[Span, tuple[Span, str]]:
    """Backward span → the later division of the same loss by a number that stands for N."""
    out: dict[Span, tuple[Span, str]] = {}
    keys = frozenset().union(*(view.n_keys(ledger) for ledger in view.ledgers)) if view.ledgers else frozenset()
    values = {c.n for ledger in view.ledgers if (c := view.cadence(ledger)) is not None}
    last: Span | None = None
    for seq, kind, item in sorted(
        [(b.seq, "b", b) for b in view.run.backwards]
        + [(e.seq, "e", e) for e in view.run.events if e.kind == "late_scale"],
        key=lambda t: t[0],
    ):
        _ = seq
        if kind == "b":
            last = item.span
        elif last is not None:
            after = item.data["after"]  # type: ignore[union-attr]
            named = any(names_n(view, key, keys) for key in item.data["keys"])  # type: ignore[union-attr]
            number = after.value.denominator in values and after.value.numerator == 1
            if named or number:
                out[last] = (item.span, item.text)  # type: ignore[union-attr]
    return out
