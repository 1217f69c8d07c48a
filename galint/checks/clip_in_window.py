"""GA303: clipping every micro-batch instead of once before the step."""

from __future__ import annotations

import re
from collections.abc import Iterator

from galint.checks.finding import Finding
from galint.checks.view import View
from galint.checks.windows import full_windows, later_micros
from galint.source import Span

CODE = "GA303"
WITNESS = "even"
_MEASURES = re.compile(r"""float\(\s*['"]inf|math\.inf|np\.inf|torch\.inf|\b1e(9|1\d)\b|['"]inf""")


def check(view: View) -> Iterator[Finding]:
    """A clip over a partial sum: other micro-batches of the same window come after it."""
    seen: set[Span] = set()
    for window in full_windows(view):
        if len(view.ledgers) > 1 and not view.lone(window.ledger):
            continue
        for mark in window.step.marks:
            if mark.kind != "clip" or mark.span in seen or not mark.pending or _MEASURES.search(mark.owner):
                continue
            later = later_micros(window, mark)
            times = sum(m.kind == "clip" and m.span == mark.span for m in window.step.marks)
            if not later or times < 2 or mark.micro not in window.micros:
                continue
            seen.add(mark.span)
            total = len(window.micros)
            yield Finding(
                CODE,
                mark.span,
                f"clipping runs {times} times in a window of {total} micro-batches: it shortens partial sums, so the "
                f"micro-batches no longer weigh 1/{total} each; clip once, before the step",
                step=window.step,
                window=total,
                related=view.places(window.step),
                applied="",
            )
