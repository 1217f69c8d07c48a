"""Source excerpts with line numbers, carets under the finding and dashes under related places."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from galint.render.style import Style, plain, width
from galint.rule import Severity
from galint.source import Span

_CONTEXT = 1
"""Lines shown before and after the finding."""
_MAX_LINE = 140
"""Cells of a source line that are shown; the rest is cut around the mark."""


@dataclass(frozen=True, slots=True)
class Mark:
    """A place to underline and what to say about it."""

    span: Span
    label: str
    primary: bool


def excerpt(lines: Sequence[str], marks: Sequence[Mark], severity: Severity, style: Style) -> list[str]:
    """The lines that the marks speak of, in file order; empty when none of them exists."""
    shown: set[int] = set()
    for mark in marks:
        around = _CONTEXT if mark.primary else 0
        first, last = mark.span.row - around, mark.span.row + around
        shown.update(row for row in range(first, last + 1) if 1 <= row <= len(lines))
    by_row: dict[int, list[Mark]] = {}
    for mark in marks:
        if 1 <= mark.span.row <= len(lines):
            by_row.setdefault(mark.span.row, []).append(mark)
    if not by_row:
        return []
    rows = sorted(shown)
    while rows and rows[0] not in by_row and not lines[rows[0] - 1].strip():
        rows.pop(0)
    while rows and rows[-1] not in by_row and not lines[rows[-1] - 1].strip():
        rows.pop()
    gutter = len(str(rows[-1]))
    bar = style("frame", "|")
    out = [f"{'':{gutter}} {bar}"]
    previous = rows[0] - 1
    for row in rows:
        if row == previous + 2 and row - 1 not in shown:
            out.append(_source(row - 1, lines[row - 2], 0, gutter, style))
        elif row > previous + 2:
            out.append(style("frame", "..."))
        previous = row
        line = lines[row - 1]
        row_marks = sorted(by_row.get(row, ()), key=lambda mark: (not mark.primary, mark.span.column))
        cut = _cut(line, row_marks)
        out.append(_source(row, line, cut, gutter, style))
        for mark in row_marks:
            out.append(f"{'':{gutter}} {bar} {_underline(line, mark, cut, severity, style)}".rstrip())
    out.append(f"{'':{gutter}} {bar}")
    return out


def _source(row: int, line: str, cut: int, gutter: int, style: Style) -> str:
    text = plain(line[cut : cut + _MAX_LINE].rstrip())
    head = "…" if cut else ""
    tail = "…" if len(line.rstrip()) > cut + _MAX_LINE else ""
    return f"{style('frame', f'{row:>{gutter}} |')} {head}{text}{tail}".rstrip()


def _cut(line: str, marks: Sequence[Mark]) -> int:
    """Where a very long line starts to be shown, so that its first mark is in view."""
    if len(line) <= _MAX_LINE or not marks:
        return 0
    column = marks[0].span.column
    return 0 if column < _MAX_LINE - 20 else max(0, column - 40)


def _underline(line: str, mark: Mark, cut: int, severity: Severity, style: Style) -> str:
    start = min(mark.span.column, len(line))
    end = mark.span.end_column if mark.span.end_row == mark.span.row else len(line.rstrip())
    end = min(max(end, start + 1), cut + _MAX_LINE)
    pad = width(plain(line[cut:start])) + (1 if cut else 0)
    length = max(1, width(plain(line[start:end])))
    stroke = ("^" if mark.primary else "-") * length
    text = f"{stroke} {mark.label}".rstrip()
    return " " * pad + (style.severity(severity, text) if mark.primary else style("related", text))
