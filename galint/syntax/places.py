"""The text of a file as CPython's syntax tree speaks of it: offsets, spans and header ends of its nodes."""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import Any

from galint.source import Span

_newlines = re.compile(r"\r\n?|\n")
_BLANK = r"(?:[ \t\f\r\n\\%s]|#[^\r\n]*)*"
_to_colon = re.compile(_BLANK % re.escape("(),/*[]") + ":").match
_skip = re.compile(_BLANK % ",;").match
_to_open = re.compile(_BLANK % ")" + r"\(").match
_to_argument = re.compile(_BLANK % "),").match


class Unsupported(Exception):
    """The tree or the text holds what only libcst's lowering knows."""


class Places:
    """A text and where its nodes lie. `row` and `shift` are added to places in the first row of a part of a file."""

    __slots__ = ("_lines", "depth", "row", "shift", "starts", "text", "unsure", "wide", "yields")

    def __init__(self, text: str, row: int = 0, shift: int = 0) -> None:
        self.text = text
        self.row = row
        self.shift = shift
        self.starts = [0, *[m.end() for m in _newlines.finditer(text)], len(text) + 1]
        self.wide = not text.isascii()
        self._lines: dict[int, bytes] = {}
        self.depth = 0
        """Expressions that are being lowered, one within the other."""
        self.yields = False
        self.unsure = False
        """Comments cannot be told from the text alone."""

    def column(self, row: int, offset: int) -> int:
        """The code points before a byte offset of a row: CPython counts bytes."""
        if not self.wide or not offset:
            return offset
        line = self._lines.get(row)
        if line is None:
            line = self._lines[row] = self.text[self.starts[row - 1] : self.starts[row]].encode()
        return len(line[:offset].decode())

    def start(self, node: Any) -> int:
        """The offset where a node of the tree begins."""
        row: int = node.lineno
        return self.starts[row - 1] + int(self.column(row, node.col_offset) if self.wide else node.col_offset)

    def end(self, node: Any) -> int:
        """The offset behind a node of the tree."""
        row: int = node.end_lineno
        return self.starts[row - 1] + int(self.column(row, node.end_col_offset) if self.wide else node.end_col_offset)

    def span(self, node: Any) -> Span:
        """The span of a node of the tree."""
        if self.wide or self.row or self.shift:
            return self.between(self.start(node), self.end(node))
        return Span(node.lineno, node.col_offset, node.end_lineno, node.end_col_offset)

    def between(self, start: int, end: int) -> Span:
        """The span of the offsets from `start` up to `end`."""
        starts = self.starts
        row = bisect_right(starts, start)
        column = start - starts[row - 1]
        end_row = row if end < starts[row] else bisect_right(starts, end)
        end_column = end - starts[end_row - 1]
        if self.row or self.shift:
            column += self.shift if row == 1 else 0
            end_column += self.shift if end_row == 1 else 0
        return Span(row + self.row, column, end_row + self.row, end_column)

    def colon(self, offset: int) -> int:
        """The offset behind the colon of a header whose last part ends at `offset`."""
        if self.text[offset : offset + 1] == ":":
            return offset + 1
        return self.match(_to_colon, offset)

    def header(self, start: int, last: int) -> Span:
        """The span of a header: from its first word to its colon."""
        return self.between(start, self.colon(last))

    def skip(self, offset: int) -> int:
        """The first offset from here on that is no blank, comment, comma or semicolon."""
        return self.match(_skip, offset)

    def opened(self, offset: int) -> int:
        """The offset behind the parenthesis that opens a call, `offset` being the end of what is called."""
        return self.match(_to_open, offset)

    def argument(self, offset: int) -> int:
        """Where the argument behind `offset` begins, an earlier argument's parentheses skipped."""
        return self.match(_to_argument, offset)

    def match(self, pattern: Any, offset: int) -> int:
        """The end of a match of `pattern` at `offset`. Raises Unsupported where there is none."""
        found = pattern(self.text, offset)
        if found is None:
            raise Unsupported
        return int(found.end())
