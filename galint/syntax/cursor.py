"""A cursor over the source text that turns lowering order into exact spans.

libcst keeps every blank as a node, and its position provider visits them all to count widths. The
lowering already walks the tree in source order, so it is enough to move an offset over the text:
one regex match jumps the blanks and comments before a token, and the token's own length is known
from the tree. That costs a fraction of the provider and needs none of the whitespace nodes.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import Any

from galint.source import Span

_BLANK = r"[ \t\f\r\n%s]*(?:(?:#[^\r\n]*|\\)[ \t\f\r\n%s]*)*"
_skip_blank = re.compile(_BLANK % (",;", ",;")).match
# Before a node that starts an expression or statement these marks carry no node of their own.
_skip_marks = re.compile(_BLANK % (",;:=", ",;:=")).match
_newlines = re.compile(r"\r\n?|\n")


class Cursor:
    """An offset into `text` that lowering moves forward, and the spans it yields on the way.

    `yields` tells whether a `yield` was seen since the innermost function began; `literals` are
    the offsets of string pieces that hold a '#' (so that it is no comment); `record`, when a list,
    receives every lowered (Span, CST node) pair.
    """

    __slots__ = ("literals", "pos", "record", "starts", "text", "yields")

    def __init__(self, text: str, record: list[tuple[Span, Any]] | None = None) -> None:
        self.text = text
        self.pos = 0
        self.yields = False
        self.literals: list[tuple[int, int]] = []
        self.record = record
        self.starts = [0, *(m.end() for m in _newlines.finditer(text)), len(text) + 1]

    def begin(self) -> int:
        """Moves to the first character of the next node and returns its offset."""
        match = _skip_marks(self.text, self.pos)
        assert match is not None
        self.pos = start = match.end()
        return start

    def skip(self) -> int:
        """Moves over blanks, comments, commas and semicolons; returns the offset reached."""
        match = _skip_blank(self.text, self.pos)
        assert match is not None
        self.pos = start = match.end()
        return start

    def token(self, width: int) -> int:
        """Moves behind the next token, `width` characters long; returns where it starts."""
        match = _skip_blank(self.text, self.pos)
        assert match is not None
        start = match.end()
        self.pos = start + width
        return start

    def word(self, width: int) -> int:
        """As `token`, but `:` and `=` before it are skipped too."""
        match = _skip_marks(self.text, self.pos)
        assert match is not None
        start = match.end()
        self.pos = start + width
        return start

    def span(self, start: int) -> Span:
        """The span from offset `start` to the cursor."""
        starts = self.starts
        end = self.pos
        row = bisect_right(starts, start)
        base = starts[row - 1]
        if end < starts[row]:
            return Span(row, start - base, row, end - base)
        end_row = bisect_right(starts, end)
        return Span(row, start - base, end_row, end - starts[end_row - 1])
