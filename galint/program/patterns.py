"""The patterns of `match`."""

from __future__ import annotations

from dataclasses import dataclass

from galint.program.expressions import Expr, Node


@dataclass(slots=True, eq=False)
class Pattern(Node):
    """Base of the patterns of `match`."""


@dataclass(slots=True, eq=False)
class MatchValue(Pattern):
    value: Expr


@dataclass(slots=True, eq=False)
class MatchSequence(Pattern):
    patterns: tuple[Pattern, ...]


@dataclass(slots=True, eq=False)
class MatchStar(Pattern):
    name: str | None


@dataclass(slots=True, eq=False)
class MatchMapping(Pattern):
    keys: tuple[Expr, ...]
    patterns: tuple[Pattern, ...]
    rest: str | None


@dataclass(slots=True, eq=False)
class MatchClass(Pattern):
    cls: Expr
    patterns: tuple[Pattern, ...]
    keywords: tuple[tuple[str, Pattern], ...]


@dataclass(slots=True, eq=False)
class MatchOr(Pattern):
    patterns: tuple[Pattern, ...]


@dataclass(slots=True, eq=False)
class MatchAs(Pattern):
    """`pattern as name`; both None is the wildcard `_`."""

    pattern: Pattern | None
    name: str | None
