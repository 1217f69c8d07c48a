"""Which of the file's own lines stand beside a drawn window, and what happens on each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from galint.explain import Happening, LoopView, happenings, listed
from galint.render.style import plain

_WHOLE = 36
"""A loop of up to this many lines is shown whole, a longer one around the lines that matter."""
_RANK = (
    "step",
    "clear",
    "unscale",
    "backward",
    "clip",
    "rescale",
    "no_sync",
    "update",
    "scheduler",
    "sync_flag",
    "forward",
)


@dataclass(frozen=True, slots=True)
class Line:
    """A line beside the drawing; `row` is 0 for a gap. `kind` is the happening that matters most on it."""

    row: int
    text: str
    kind: str = ""
    alarm: bool = False
    """It discards gradients."""


def beside(view: LoopView, lines: Sequence[str]) -> list[Line]:
    """The loop's lines and those outside it where something happens, in order, gaps marked."""
    if view.file:
        return []  # the lines are the explained file's, and the loop is another's
    seen: dict[int, list[Happening]] = {}
    for h in happenings(view):
        if not h.file:
            seen.setdefault(h.span.row, []).append(h)
    whole = view.end_row - view.span.row < _WHOLE
    rows = set(range(view.span.row, view.end_row + 1)) if whole else {view.span.row}
    for row in seen:
        rows |= {row} if whole else {row - 1, row, row + 1}
    for ledger in view.ledgers:
        if ledger.guard is not None:
            rows.add(ledger.guard.row)
    lost = {r.lost_at.row for _, w in listed(view) for r in w.rows if r.lost_at is not None}
    out: list[Line] = []
    for row in sorted(r for r in rows if 1 <= r <= len(lines)):
        if out and out[-1].row not in (0, row - 1):
            out.append(Line(0, ""))
        kinds = {h.kind for h in seen.get(row, ())}
        out.append(Line(row, plain(lines[row - 1]).rstrip(), next((k for k in _RANK if k in kinds), ""), row in lost))
    return _dedented(out)


def _dedented(lines: list[Line]) -> list[Line]:
    """The lines without the indentation that all of them share."""
    indents = [len(x.text) - len(x.text.lstrip()) for x in lines if x.text.strip()]
    cut = min(indents, default=0)
    return [Line(x.row, x.text[cut:], x.kind, x.alarm) for x in lines]
