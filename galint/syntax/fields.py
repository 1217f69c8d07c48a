"""Finds the replacement fields of f-strings in the text, for Pythons before 3.12 that give wrong places in them."""

from __future__ import annotations

import re
from typing import NamedTuple

from galint.syntax.places import Unsupported

_piece = re.compile(r"(?:[ \t\f\r\n\\]|#[^\r\n]*)*([A-Za-z]*)('''|\"\"\"|'|\")")
_escape = re.compile(r"\\(?:N\{[^}]*\}|\r\n|.)", re.DOTALL)
_quoted = re.compile(r"'''.*?'''|\"\"\".*?\"\"\"|'[^']*'|\"[^\"]*\"", re.DOTALL)


class Field(NamedTuple):
    """One expression of an f-string: its text, blanks around it left out, and its offsets."""

    text: str
    start: int
    end: int


def fields(text: str, start: int, end: int) -> list[Field]:
    """The expressions of the f-strings among the adjacent literals from `start` to `end`, those of formats too.

    Raises Unsupported where the text does not look as expected.
    """
    out: list[Field] = []
    while start < end:
        piece = _piece.match(text, start, end)
        if piece is None:
            raise Unsupported
        prefix, quotes = piece.group(1).lower(), piece.group(2)
        position = piece.end()
        while not text.startswith(quotes, position):
            if position >= end:
                raise Unsupported
            char = text[position]
            if char == "\\":
                escape = _escape.match(text, position, end)
                if escape is None:
                    raise Unsupported
                position = position + 2 if "r" in prefix or "f" not in prefix else escape.end()
            elif char == "{" and "f" in prefix:
                position = position + 2 if text.startswith("{{", position) else _field(text, position, end, out)
            else:
                position += 1
        start = position + len(quotes)
    return out


def _field(text: str, position: int, limit: int, out: list[Field]) -> int:
    """Adds the field that opens at `position`; the offset behind its closing brace."""
    begin = position = position + 1
    depth = 0
    while True:
        if position >= limit:
            raise Unsupported
        char = text[position]
        if char in "'\"":
            quoted = _quoted.match(text, position, limit)
            if quoted is None:
                raise Unsupported
            position = quoted.end()
            continue
        if char in "([{":
            depth += 1
        elif depth and char in ")]}":
            depth -= 1
        elif not depth:
            if char in "!=<>" and text.startswith("=", position + 1):
                position += 2
                continue
            if char in "!:}=":
                break
        position += 1
    whole = text[begin:position]
    inner = whole.strip(" \t\f\r\n")
    start = begin + len(whole) - len(whole.lstrip(" \t\f\r\n"))
    out.append(Field(inner, start, start + len(inner)))
    while text[position : position + 1] not in {":", "}"}:  # `=` and `!r`
        position += 1
        if position >= limit:
            raise Unsupported
    if text[position] == "}":
        return position + 1
    position += 1
    while not text.startswith("}", position):
        if position >= limit:
            raise Unsupported
        position = _field(text, position, limit, out) if text[position] == "{" else position + 1
    return position + 1
