"""Parses a text that differs little from the one before: only the top-level statements around the change anew."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator

from galint.errors import ParseError
from galint.program import ClassDef, FunctionDef, Node, Program, Stmt
from galint.source import Source, Span
from galint.syntax.parsing import parse


class Incremental:
    """Parses the successive texts of one document.

    A program that was returned is used up by the next call: statements that did not change are taken over
    from it, and moved where rows were added or removed above them.
    """

    def __init__(self) -> None:
        self._source: Source | None = None
        self._program: Program | None = None

    def parse(self, text: str) -> Program:
        """Exactly what `syntax.parse(text)` gives. Raises ParseError; the text before then stays the base."""
        source = Source("", text)
        program = self._partly(source)
        if program is None:
            program = parse(text)
        self._source, self._program = source, program
        return program

    def _partly(self, new: Source) -> Program | None:
        old, program = self._source, self._program
        if old is None or program is None or not program.body or "\ufeff" in (old.text[:1], new.text[:1]):
            return None
        if old.text == new.text:
            return program
        head, tail = _common(old.lines, new.lines)
        starts = [_first_row(stmt) for stmt in program.body]
        # From the statement before the change (the change may continue it) up to the first one below it.
        begin = bisect_right(starts, head) - 1
        first_row = starts[begin] if begin >= 0 else 1
        begin = bisect_left(starts, first_row)
        end = bisect_left(starts, len(old.lines) - tail + 1, lo=begin)
        shift = len(new.lines) - len(old.lines)
        last_row = starts[end] + shift if end < len(starts) else len(new.lines) + 1
        if last_row <= first_row:
            return None
        chunk = new.text[new.offset(first_row, 0) : new.offset(last_row, 0)]
        if chunk.rstrip("\r\n").endswith("\\"):
            return None
        try:
            part = parse(chunk)
        except ParseError:
            return None
        for stmt in part.body:
            _move(stmt, first_row - 1)
        if shift:
            for stmt in program.body[end:]:
                _move(stmt, shift)
        comments = {row: text for row, text in program.comments.items() if row < first_row}
        comments.update({row + first_row - 1: text for row, text in part.comments.items()})
        comments.update({row + shift: text for row, text in program.comments.items() if row + shift >= last_row})
        return Program((*program.body[:begin], *part.body, *program.body[end:]), dict(sorted(comments.items())))


def _common(old: list[str], new: list[str]) -> tuple[int, int]:
    """How many lines the texts share at their start and at their end."""
    most = min(len(old), len(new))
    head = 0
    while head < most and old[head] == new[head]:
        head += 1
    tail = 0
    while tail < most - head and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    return head, tail


def _first_row(stmt: Stmt) -> int:
    """The first row of a statement, its decorators included."""
    rows = [stmt.span.row]
    if isinstance(stmt, (FunctionDef, ClassDef)):
        rows += [decorator.span.row for decorator in stmt.decorators]
    return min(rows)


def _move(stmt: Stmt, rows: int) -> None:
    """Move a statement and everything in it down by so many rows."""
    if not rows:
        return
    moved: dict[Span, Span] = {}
    for node in _nodes(stmt):
        span = node.span
        new = moved.get(span)
        if new is None:
            new = moved[span] = Span(span.row + rows, span.column, span.end_row + rows, span.end_column)
        node.span = new


def _nodes(stmt: Stmt) -> Iterator[Node]:
    """A statement and every node below it, each once."""
    seen: set[int] = set()
    stack: list[Node] = [stmt]
    while stack:
        node = stack.pop()
        if id(node) not in seen:
            seen.add(id(node))
            yield node
            stack += node.children()
