"""Changes to whole statements: delete, move, insert, wrap, with their comments, indentation and line ends."""

from __future__ import annotations

import io
import re
import tokenize

from galint import program as p
from galint.fixes.outline import Outline, first_row, last_row
from galint.fixes.textedit import Change, Lines
from galint.source import Span


class Unfixable(Exception):
    """This rewrite does not fit the text; the next candidate may."""


class Editor:
    """Collects the changes of one fix."""

    def __init__(self, lines: Lines, outline: Outline) -> None:
        self.lines = lines
        self.outline = outline
        self.changes: list[Change] = []

    # --- small ---------------------------------------------------------------------------------

    def replace(self, span: Span, content: str) -> None:
        """Put `content` where `span` is."""
        self.changes.append(Change(*self.lines.at(span), content))

    def source(self, node: p.Node) -> str:
        """The node's own text."""
        return self.lines.slice(node.span)

    def step(self) -> str:
        """One step of indentation, as the file writes it."""
        for stmt, seat in self.outline.seats.items():
            if seat.index == 0 and isinstance(seat.holder, p.Stmt) and stmt.span.row > seat.holder.span.end_row:
                outer, inner = self.lines.indent(seat.holder.span.row), self.lines.indent(stmt.span.row)
                if inner.startswith(outer) and len(inner) > len(outer):
                    return inner[len(outer) :]
        return "    "

    def fits(self, indent: str, text: str) -> bool:
        """Whether a line is no longer than the file's own lines get: 100 to 120 columns."""
        longest = max(len(line) for line in self.lines.text.splitlines() or [""])
        return len(indent) + len(text) <= min(120, max(100, longest))

    # --- whole statements ----------------------------------------------------------------------

    def alone(self, stmt: p.Stmt) -> bool:
        """Whether no other statement shares the statement's rows."""
        first, last = first_row(stmt), last_row(stmt)
        before = self.lines.line(first)[: stmt.span.column] if first == stmt.span.row else ""
        if before.strip() or (first > 1 and self.lines.line(first - 1).endswith("\\")):
            return False
        ends = [n.span for n in self.outline.walk(stmt) if n.span.end_row == last]
        column = max(s.end_column for s in ends)
        after = self.lines.line(last)[column:].strip().lstrip(")]}:, ")
        return not after or after.startswith("#")

    def head(self, stmt: p.Stmt) -> int:
        """First row of the statement with the comment above that speaks of it."""
        row = first_row(stmt)
        indent = self.lines.indent(row)
        start = row
        while start > 1 and self.lines.line(start - 1).startswith(indent + "#"):
            start -= 1
        if start == row:
            return row
        words = _words(self.lines.slice(stmt.span))
        said = _words(" ".join(self.lines.line(k) for k in range(start, row)))
        return start if words & said else row

    def take(self, stmt: p.Stmt) -> list[str]:
        """The statement's lines without their common indentation, its comment above included."""
        if not self.alone(stmt):
            if first_row(stmt) != last_row(stmt):
                raise Unfixable
            return [self.source(stmt)]
        first, last = self.head(stmt), last_row(stmt)
        indent = self.lines.indent(first_row(stmt))
        rows = range(first, last + 1)
        if any(row in self.string_rows() for row in rows):
            raise Unfixable
        return [self.lines.line(row).removeprefix(indent) for row in rows]

    def delete(self, stmt: p.Stmt) -> None:
        """Remove the statement, and the block around it when nothing else is in there."""
        self.delete_all([stmt])

    def delete_all(self, stmts: list[p.Stmt]) -> None:
        """Remove statements that follow each other in one body."""
        seat = self.outline.seats[stmts[0]]
        if len(seat.body) == len(stmts):
            holder = seat.holder
            plain = isinstance(holder, p.With) or (isinstance(holder, p.If) and not holder.orelse)
            if isinstance(holder, (p.With, p.If)) and plain and not self._elif(holder):
                return self.delete(holder)
            if isinstance(holder, p.If) and seat.body is holder.orelse and self.alone(stmts[0]):
                row = self._else_row(holder, stmts[0])
                return self._drop_rows(row, last_row(stmts[-1]))
            if not self.alone(stmts[0]) or len(stmts) > 1:
                raise Unfixable
            self.replace(stmts[0].span, "pass")
            return None
        if all(self.alone(s) for s in stmts):
            return self._drop_rows(self.head(stmts[0]), last_row(stmts[-1]))
        if len(stmts) > 1 or first_row(stmts[0]) != last_row(stmts[0]):
            raise Unfixable
        return self._drop_in_line(stmts[0])

    def _elif(self, stmt: p.Stmt) -> bool:
        return self.lines.slice(stmt.span).startswith("elif")

    def _else_row(self, holder: p.If, first: p.Stmt) -> int:
        row = first_row(first) - 1
        while row > holder.span.row and not re.match(r"\s*else\s*:", self.lines.line(row)):
            if self.lines.line(row).strip() and not self.lines.line(row).strip().startswith("#"):
                raise Unfixable
            row -= 1
        if row <= holder.span.row:
            raise Unfixable
        return row

    def _drop_rows(self, first: int, last: int) -> None:
        """Remove rows, and one of the two blank rows that would now meet."""
        above = self.lines.line(first - 1).strip() if first > 1 else ""
        below = self.lines.line(last + 1).strip() if last < len(self.lines) else "x"
        opens = above.endswith(":") or not above
        if not below and opens and last + 1 < len(self.lines):
            last += 1
        self.changes.append(Change(self.lines.offset(first, 0), self.lines.offset(last + 1, 0), ""))

    def _drop_in_line(self, stmt: p.Stmt) -> None:
        start, end = self.lines.at(stmt.span)
        text = self.lines.text
        after = re.match(r"[ \t]*;[ \t]*", text[end:])
        before = re.search(r"[ \t]*;[ \t]*$", text[:start])
        if after:
            self.changes.append(Change(start, end + after.end(), ""))
        elif before:
            self.changes.append(Change(before.start(), end, ""))
        else:
            raise Unfixable

    def insert_after(self, stmt: p.Stmt, text: list[str]) -> None:
        """New lines below a statement, at its indentation."""
        if not self.alone(stmt):
            if len(text) == 1 and first_row(stmt) == last_row(stmt) and not text[0].endswith(":"):
                end = self.lines.at(stmt.span)[1]
                self.changes.append(Change(end, end, f"; {text[0]}"))
                return
            raise Unfixable
        self._insert(last_row(stmt) + 1, self.lines.indent(first_row(stmt)), text)

    def insert_before(self, stmt: p.Stmt, text: list[str]) -> None:
        """New lines above a statement (and above the comment that speaks of it), at its indentation."""
        if not self.alone(stmt):
            raise Unfixable
        self._insert(self.head(stmt), self.lines.indent(first_row(stmt)), text)

    def under(self, conditions: list[str], text: list[str]) -> list[str]:
        """Lines under an `if` with all of the conditions; the lines themselves when there is none."""
        if not conditions:
            return text
        many = len(conditions) > 1
        joined = " and ".join(f"({c})" if many and " or " in c else c for c in conditions)
        return [f"if {joined}:", *(self.step() + line if line else line for line in text)]

    def insert_row(self, row: int, text: list[str]) -> None:
        """New lines in front of a row, without indentation."""
        self._insert(row, "", text)

    def _insert(self, row: int, indent: str, text: list[str]) -> None:
        newline = self.lines.ending(max(row - 1, 1))
        body = newline.join(indent + line if line else line for line in text)
        place = self.lines.offset(row, 0)
        if row > len(self.lines) and not self.lines.text.endswith(("\n", "\r")):
            self._put(place, newline + body)
        else:
            self._put(place, body + newline)

    def _put(self, place: int, content: str) -> None:
        for index, change in enumerate(self.changes):
            if change.start == change.end == place:
                self.changes[index] = Change(place, place, change.content + content)
                return
        self.changes.append(Change(place, place, content))

    def wrap(self, first: p.Stmt, last: p.Stmt, header: str) -> None:
        """Put the statements from `first` to `last` (of one body) under `header`."""
        if not self.alone(first) or not self.alone(last):
            raise Unfixable
        start, end = self.head(first), last_row(last)
        indent, step = self.lines.indent(first_row(first)), self.step()
        self._put(self.lines.offset(start, 0), f"{indent}{header}{self.lines.ending(start)}")
        for row in range(start, end + 1):
            if self.lines.line(row).strip() and row not in self.string_rows():
                self._put(self.lines.offset(row, 0), step)

    def string_rows(self) -> set[int]:
        """Rows that begin inside a string."""
        known: set[int] | None = getattr(self.outline, "string_rows", None)
        if known is None:
            known = set()
            try:
                starts: list[int] = []
                for token in tokenize.generate_tokens(io.StringIO(self.lines.text).readline):
                    name = tokenize.tok_name[token.type]
                    if name == "STRING":
                        known.update(range(token.start[0] + 1, token.end[0] + 1))
                    elif name in ("FSTRING_START", "TSTRING_START"):
                        starts.append(token.start[0])
                    elif name in ("FSTRING_END", "TSTRING_END") and starts:
                        known.update(range(starts.pop() + 1, token.end[0] + 1))
            except (tokenize.TokenError, SyntaxError):
                pass
            self.outline.string_rows = known
        return known


def _words(text: str) -> set[str]:
    """The stems by which a comment is known to speak of a statement."""
    out: set[str] = set()
    for word in re.findall(r"[A-Za-z]+", text.replace("_", " ")):
        if len(word) >= 4 and word.lower()[:4] not in {"self", "args", "accu", "this", "with", "none", "true", "fals"}:
            out.add(word.lower()[:4])
    return out
