"""Lowers the patterns of `match` to the loop program."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import libcst as cst

from galint import program as p
from galint.syntax.cursor import Cursor
from galint.syntax.dispatch import expr

Lower = Callable[[Cursor, Any, int], p.Pattern]


def pattern(c: Cursor, node: Any) -> p.Pattern:
    """Lowers one pattern; the span leaves out its own parentheses, except a sequence's."""
    if isinstance(node, (cst.MatchValue, cst.MatchSingleton)):
        # The parentheses of `case (1):` belong to the value.
        value = expr(c, node.value)
        return p.MatchValue(value.span, value)
    lpar = node.lpar
    for _ in lpar:
        opened = c.begin()
        c.pos = opened + 1
    out = _TABLE[type(node)](c, node, c.begin())
    if lpar:
        c.token(1)
        if isinstance(node, cst.MatchTuple):
            out.span = c.span(opened)
        for _ in lpar[1:]:
            c.token(1)
    return out


def _sequence(c: Cursor, node: cst.MatchList | cst.MatchTuple, start: int) -> p.Pattern:
    bracketed = isinstance(node, cst.MatchList) and node.lbracket is not None
    if bracketed:
        c.pos = start + 1
    items: list[p.Pattern] = []
    for element in node.patterns:
        if isinstance(element, cst.MatchStar):
            items.append(_star(c, element))
        else:
            items.append(pattern(c, element.value))
    if bracketed:
        c.token(1)
    return p.MatchSequence(c.span(start), tuple(items))


def _star(c: Cursor, node: cst.MatchStar) -> p.Pattern:
    start = c.token(1)
    name = "_" if node.name is None else node.name.value
    c.token(len(name))
    return p.MatchStar(c.span(start), None if name == "_" else name)


def _mapping(c: Cursor, node: cst.MatchMapping, start: int) -> p.Pattern:
    c.pos = start + 1
    keys: list[p.Expr] = []
    values: list[p.Pattern] = []
    for element in node.elements:
        keys.append(expr(c, element.key))
        values.append(pattern(c, element.pattern))
    rest: str | None = None
    if node.rest is not None:
        rest = node.rest.value
        c.token(2)
        c.token(len(rest))
    c.token(1)
    return p.MatchMapping(c.span(start), tuple(keys), tuple(values), rest)


def _class(c: Cursor, node: cst.MatchClass, start: int) -> p.Pattern:
    cls = expr(c, node.cls)
    c.token(1)
    positional = tuple([pattern(c, element.value) for element in node.patterns])
    keywords: list[tuple[str, p.Pattern]] = []
    for keyword in node.kwds:
        c.token(len(keyword.key.value))
        keywords.append((keyword.key.value, pattern(c, keyword.pattern)))
    c.token(1)
    return p.MatchClass(c.span(start), cls, positional, tuple(keywords))


def _as(c: Cursor, node: cst.MatchAs, start: int) -> p.Pattern:
    inner = None if node.pattern is None else pattern(c, node.pattern)
    if inner is not None:
        c.token(2)
    name = "_" if node.name is None else node.name.value
    c.token(len(name))
    return p.MatchAs(c.span(start), inner, None if name == "_" else name)


def _or(c: Cursor, node: cst.MatchOr, start: int) -> p.Pattern:
    choices: list[p.Pattern] = []
    for element in node.patterns:
        if choices:
            c.token(1)
        choices.append(pattern(c, element.pattern))
    return p.MatchOr(c.span(start), tuple(choices))


_TABLE: dict[type, Lower] = {
    cst.MatchList: _sequence, cst.MatchTuple: _sequence, cst.MatchMapping: _mapping,
    cst.MatchClass: _class, cst.MatchAs: _as, cst.MatchOr: _or,
}  # fmt: skip
