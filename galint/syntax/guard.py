"""Refuses text that no file may hold, and, before libcst sees it, what would overflow its stack or keep it busy.

libcst's native parser descends into nested and chained expressions without a limit: 5,000 unary minuses, 10,000
`elif`s or 2,400 parentheses end the process, and nested patterns of `case` take it exponential time. One scan over
the marks of the text estimates the depth of each expression; real code stays far below the limits.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from galint.errors import ParseError, TooComplex, TooLarge
from galint.syntax.cursor import Cursor

MAX_NESTING = 200
"""Nested brackets and lambdas; CPython's own limit."""
MAX_CHAIN = 1_000
"""Operators, attributes, calls and other links of one expression, over all brackets around it."""
MAX_PATTERN = 8
"""Nested brackets of a `case`: each level multiplies libcst's time by four."""
MAX_ELIFS = 2_000
MAX_STRINGS = 2_000
"""Adjacent string literals."""
MAX_LINES = 200_000
"""Lines, empty ones too: libcst makes a node of each."""
MAX_MARKS = 150_000
"""Operators, brackets and separators of a file: some five seconds of parsing."""

_TOO_LARGE = "the file is too large"
_FRAMES = 6_000
_marks = re.compile(
    r"#[^\r\n]*"
    r"|(?:\b[A-Za-z]{1,2})?(?:\"\"\"(?:[^\"\\]|\\.|\"(?!\"\"))*(?:\"\"\"|\Z)|'''(?:[^'\\]|\\.|'(?!''))*(?:'''|\Z)"
    r"|\"(?:[^\"\\\r\n]|\\(?:\r\n|.))*\"?|'(?:[^'\\\r\n]|\\(?:\r\n|.))*'?)"
    r"|\\\r?\n|[\r\n]+[ \t\f]*(?:case\b)?|\b(?:not|and|or|in|is|if|else|for|await|lambda|elif)\b|[^\w\s\"'\\#]",
    re.DOTALL,
)
_WORDS = frozenset({"not", "and", "or", "in", "is", "if", "else", "for", "await"})


def guard(text: str, lines: int = MAX_LINES) -> None:
    """Raises ParseError for what no file may hold, TooComplex for what galint does not take on; TooLarge for its size."""
    admit(text, lines)
    found = _scan(text, 0)
    if found is not None:
        kind = TooLarge if found[0] == _TOO_LARGE else TooComplex
        raise kind(found[0], *row_column(text, found[1]))


def admit(text: str, lines: int = MAX_LINES) -> None:
    """The part of `guard` about characters and lines; CPython's parser knows its own limits of depth."""
    if (zero := text.find("\0")) >= 0:
        raise ParseError("source code cannot contain null bytes", *row_column(text, zero))
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ParseError("source code cannot contain surrogates", *row_column(text, error.start)) from None
    if text.count("\n") + text.count("\r") > lines:
        raise TooLarge(_TOO_LARGE, 1, 1)


@contextmanager
def deep() -> Iterator[None]:
    """Room for recursion over what `guard` lets through; Python's own frames take no C stack."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, _FRAMES))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


def _scan(text: str, spent: int) -> tuple[str, int] | None:
    """What is too much in `text`, and at which offset; None where nothing is."""
    level, total, strings = 0, 0, 0  # links of the innermost bracket, and of all brackets around it
    outer: list[int] = []
    lambdas, open_lambdas, elifs = 0, 0, 0
    in_case = False
    for count, match in enumerate(_marks.finditer(text), spent):
        mark = match.group()
        first = mark[0]
        if mark in ".+-*/%@&|^~<>!=" or mark in _WORDS:
            level += 1
            if level + total > MAX_CHAIN:
                return "the expression has too many links", match.start()
        elif first in "([{":
            level += 1
            outer.append(level)
            total += level
            level = 0
            if len(outer) > MAX_NESTING:
                return "too many nested brackets", match.start()
            if in_case and len(outer) > MAX_PATTERN:
                return "too many nested patterns", match.start()
            if total > MAX_CHAIN:
                return "the expression has too many links", match.start()
        elif first in ")]}":
            if outer:
                level = outer.pop()
                total -= level
            open_lambdas = 0
        elif first in "\r\n":
            if not outer:
                level = lambdas = open_lambdas = strings = 0
                in_case = mark.endswith("case")
        elif mark == "lambda":
            lambdas += 1
            open_lambdas += 1
            level += 1
            if lambdas >= MAX_NESTING:
                return "too many nested lambdas", match.start()
        elif first == ":":
            if open_lambdas:
                open_lambdas -= 1
            else:
                level = strings = 0
        elif first == ",":
            if not open_lambdas:
                level = lambdas = strings = 0
        elif first == ";":
            level = lambdas = strings = 0
        elif mark == "elif":
            elifs += 1
            if elifs > MAX_ELIFS:
                return "too many `elif`s", match.start()
        elif first != "#" and (mark[-1] in "\"'" or first in "\"'"):
            strings += 1
            if strings > MAX_STRINGS:
                return "too many joined strings", match.start()
            if first in "fFrRtT" and mark[:2].lower().strip("\"'rt") == "f" and (inner := _fields(mark)):
                found = _scan(inner, count)
                if found is not None:
                    return found[0], match.start()
        if count > MAX_MARKS:
            return _TOO_LARGE, 0
    return None


def _fields(literal: str) -> str:
    """The replacement fields of an f-string, one a line."""
    if literal.count("{") == 0 or len(literal) < 60:
        return ""
    out: list[str] = []
    depth = 0
    for char in literal.replace("{{", "").replace("}}", "") if literal.count("{") < MAX_NESTING else literal:
        if char == "{":
            depth += 1
        elif char == "}":
            depth = max(depth - 1, 0)
        if depth or char == "}":
            out.append(" " if char in "\"'\r\n" else char)
        elif out and out[-1] != "\n":
            out.append("\n")
    return "".join(out)


def row_column(text: str, offset: int) -> tuple[int, int]:
    """The 1-based row and column of an offset."""
    starts = Cursor(text[:offset]).starts
    return len(starts) - 1, offset - starts[-2] + 1
