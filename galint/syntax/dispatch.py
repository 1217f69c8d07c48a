"""Lowers any expression by its type: parentheses, span and record here, the rest in the table's functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import libcst as cst

from galint import program as p
from galint.syntax.cursor import Cursor

Lower = Callable[[Cursor, Any, int], p.Expr]

# Filled by `galint.syntax.expressions`: the functions call `expr` again, so it cannot live beside them all.
TABLE: dict[type, Lower] = {}
_OWN_PARENTHESES = {cst.Tuple, cst.GeneratorExp}


def expr(c: Cursor, node: Any) -> p.Expr:
    """Lowers one expression; the span leaves out its own parentheses, except a tuple's."""
    lpar = node.lpar
    if lpar:
        for _ in lpar:
            opened = c.begin()
            c.pos = opened + 1
    start = c.begin()
    out = TABLE[type(node)](c, node, start)
    if lpar:
        c.token(1)
        if type(node) in _OWN_PARENTHESES:
            out.span = c.span(opened)
        for _ in lpar[1:]:
            c.token(1)
    if c.record is not None:
        c.record.append((out.span, node))
    return out


def optional(c: Cursor, node: Any) -> p.Expr | None:
    """Lowers `node` unless it is None."""
    return None if node is None else expr(c, node)
