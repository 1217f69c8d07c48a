"""Edits on a file's text: places as offsets, applying edits, and the edits between two texts."""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterable
from dataclasses import dataclass

from galint.diagnostic import Edit
from galint.source import Source, Span

_NEWLINE = re.compile(r"\r\n|\r|\n")


@dataclass(frozen=True, slots=True, order=True)
class Change:
    """Replace `text[start:end]` by `content`; offsets count code points."""

    start: int
    end: int
    content: str


class Lines:
    """A text by rows (1-based), with its own line end and its own step of indentation."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.starts = [0, *(m.end() for m in _NEWLINE.finditer(text))]
        first = _NEWLINE.search(text)
        self.newline = first.group() if first else "\n"

    def __len__(self) -> int:
        return len(self.starts)

    def offset(self, row: int, column: int) -> int:
        """Offset of a 1-based row and 0-based column; a row past the end is the end."""
        if row > len(self.starts):
            return len(self.text)
        return min(self.starts[row - 1] + column, len(self.text))

    def at(self, span: Span) -> tuple[int, int]:
        """Start and end offset of a span."""
        return self.offset(span.row, span.column), self.offset(span.end_row, span.end_column)

    def slice(self, span: Span) -> str:
        """The text of a span."""
        start, end = self.at(span)
        return self.text[start:end]

    def whole(self, row: int) -> str:
        """A row with its line end."""
        return self.text[self.offset(row, 0) : self.offset(row + 1, 0)]

    def line(self, row: int) -> str:
        """A row without its line end."""
        return self.whole(row).rstrip("\r\n")

    def ending(self, row: int) -> str:
        """How a row ends; as the file's first row does where it does not end."""
        whole = self.whole(row)
        return whole[len(whole.rstrip("\r\n")) :] or self.newline

    def indent(self, row: int) -> str:
        """The white space a row starts with."""
        line = self.line(row)
        return line[: len(line) - len(line.lstrip(" \t\f"))]

    def place(self, offset: int) -> tuple[int, int]:
        """Row and column of an offset."""
        low, high = 0, len(self.starts)
        while high - low > 1:
            middle = (low + high) // 2
            if self.starts[middle] <= offset:
                low = middle
            else:
                high = middle
        return low + 1, offset - self.starts[low]


def with_parentheses(lines: Lines, span: Span) -> Span:
    """An expression's span with the parentheses right around it, unless a call needs them."""
    text, (start, end) = lines.text, lines.at(span)
    own = text[start - 1 : start] == "(" and text[end : end + 1] == ")"
    before = re.search(r"(\w+|[\])])[ \t]*$", text[: start - 1][-40:])
    called = before is not None and not keyword.iskeyword(before[1])
    return Span(*lines.place(start - 1), *lines.place(end + 1)) if own and not called else span


def edits_of(changes: Iterable[Change], lines: Lines) -> tuple[Edit, ...]:
    """The changes as edits on spans, in the order of the text."""
    return tuple(Edit(Span(*lines.place(c.start), *lines.place(c.end)), c.content) for c in sorted(changes))


def changes_of(edits: Iterable[Edit], source: Source) -> list[Change]:
    """Edits on spans as changes on offsets, in the order of the text."""
    return sorted(
        Change(source.offset(e.span.row, e.span.column), source.offset(e.span.end_row, e.span.end_column), e.content)
        for e in edits
    )


def overlaps(changes: list[Change], others: list[Change]) -> bool:
    """Whether two sets of changes touch the same text, or insert at the same place."""
    return any(
        (a.start < b.end and b.start < a.end) or (a.start == b.start and (a.start == a.end or b.start == b.end))
        for a in changes
        for b in others
    )


def apply_changes(text: str, changes: Iterable[Change]) -> str:
    """`text` with all changes made. Raises ValueError when two of them overlap."""
    out: list[str] = []
    position = 0
    for change in sorted(changes):
        if change.start < position:
            raise ValueError("edits overlap")
        out += [text[position : change.start], change.content]
        position = change.end
    return "".join([*out, text[position:]])
