"""GA303: clipping every micro-batch instead of once before the step."""

from __future__ import annotations

import re
from collections.abc import Iterator

from galint.checks.finding import Finding
from galint.checks.view import View
from galint.checks.windows import full_windows, later_micros
from galint.ledger import Mark
from galint.source import Span

CODE = "GA303"
WITNESS = "even"
_MEASURES = re.compile(r"""float\(\s*['"]inf|math\.inf|np\.inf|torch\.inf|\b1e(9|1\d)\b|['"]inf""")


def check(view: View) -> Iterator[Finding]:
    """A clip over a partial sum: other micro-batches of the same window come after it."""
    seen: set[Span] = set()
    once = _beside_the_step(view)
    for window in full_windows(view):
        if len(view.ledgers) > 1 and not view.lone(window.ledger):
            continue
        for mark in window.step.marks:
            if mark.kind != "clip" or mark.span in seen or not mark.pending or _MEASURES.search(mark.owner):
                continue
            later = later_micros(window, mark)
            times = sum(m.kind == "clip" and m.span == mark.span for m in window.step.marks)
            if not later or not _within(view, mark, window.micros) or (times < 2 and mark.span not in once):
                continue
            seen.add(mark.span)
            total = len(window.micros)
            yield Finding(
                CODE,
                mark.span,
                _often(times, total) if times > 1 else _early(total - len(later), total),
                step=window.step,
                window=total,
                related=view.places(window.step),
                applied="",
            )


def _within(view: View, mark: Mark, micros: list[int]) -> bool:
    """Whether a clip ran in the pass of one of some micro-batches, in a loop over the parameters too."""
    paths = [micro.path for token in micros if (micro := view.micro(token)) is not None and micro.path]
    return mark.micro in micros or any(mark.where[: len(path)] == path for path in paths)


def _often(times: int, total: int) -> str:
    return (
        f"clipping runs {times} times in a window of {total} micro-batches: it shortens partial sums, so the "
        f"micro-batches no longer weigh 1/{total} each; clip once, before the step"
    )


def _early(clipped: int, total: int) -> str:
    return (
        f"clipping comes after {clipped} of the {total} micro-batches of a window, and the step after all of them: "
        "the bound holds for a partial sum; clip right before the step"
    )


def _beside_the_step(view: View) -> set[Span]:
    """The clippings that wait for N, at another micro-batch than the step does: once in each window, at the same place."""
    out: set[Span] = set()
    right: set[Span] = set()
    """Clippings that stand where they should for one of the optimizers: they are that one's."""
    for ledger in view.ledgers:
        steps = [s for s in view.steps(ledger) if len(set(s.window)) > 1]
        places: dict[Span, list[int]] = {}
        for step in steps:
            order = list(dict.fromkeys(step.window))
            for mark in step.marks:
                if mark.kind == "clip" and mark.micro in order:
                    right |= {mark.span} if mark.micro == order[-1] else set()
                    places.setdefault(mark.span, []).append(order.index(mark.micro))
        out |= {span for span, at in places.items() if len(at) == len(steps) > 1 and len(set(at)) == 1}
    return out - right
