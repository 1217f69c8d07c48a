"""Lowers string literals: plain, formatted, template and adjacent ones."""

from __future__ import annotations

from typing import Any

import libcst as cst

from galint import program as p
from galint.syntax import literals
from galint.syntax.cursor import Cursor
from galint.syntax.dispatch import expr


def _piece(c: Cursor, spelling: str) -> None:
    """Moves over literal text that begins exactly at the cursor."""
    start = c.pos
    c.pos = start + len(spelling)
    if "#" in spelling:
        c.literals.append((start, c.pos))


def simple(c: Cursor, node: cst.SimpleString, start: int) -> p.Expr:
    """Lowers a string or bytes literal."""
    _piece(c, node.value)
    return p.Const(c.span(start), literals.string(node.value))


def formatted(c: Cursor, node: cst.FormattedString | cst.TemplatedString, start: int) -> p.Expr:
    """Lowers an f-string or t-string to the expressions inside it, those of format specs too."""
    c.pos = start + len(node.start)
    values: list[p.Expr] = []
    _parts(c, node.parts, values)
    c.pos += len(node.end)
    return p.FString(c.span(start), tuple(values))


def _parts(c: Cursor, parts: Any, values: list[p.Expr]) -> None:
    for part in parts:
        if isinstance(part, (cst.FormattedStringText, cst.TemplatedStringText)):
            _piece(c, part.value)
            continue
        c.pos += 1
        values.append(expr(c, part.expression))
        if part.equal is not None:
            c.token(1)
        if part.conversion is not None:
            c.token(1)
            c.token(len(part.conversion))
        if part.format_spec is not None:
            c.token(1)
            _parts(c, part.format_spec, values)
            c.pos += 1
        else:
            c.token(1)


def concatenated(c: Cursor, node: cst.ConcatenatedString, start: int) -> p.Expr:
    """Lowers adjacent literals to one constant, or to one FString when any part is formatted."""
    pieces: list[p.Expr] = []
    rest: Any = node
    while isinstance(rest, cst.ConcatenatedString):
        pieces.append(expr(c, rest.left))
        rest = rest.right
    pieces.append(expr(c, rest))
    span = c.span(start)
    texts = [piece.value for piece in pieces if isinstance(piece, p.Const)]
    if len(texts) < len(pieces):
        return p.FString(span, tuple(v for piece in pieces if isinstance(piece, p.FString) for v in piece.values))
    if isinstance(texts[0], bytes):
        return p.Const(span, b"".join(t for t in texts if isinstance(t, bytes)))
    return p.Const(span, "".join(t for t in texts if isinstance(t, str)))
