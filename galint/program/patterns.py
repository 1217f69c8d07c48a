"""The patterns of `match`."""

from __future__ import annotations

from dataclasses import dataclass

from galint.program.expressions import Expr, Node, some


@dataclass(slots=True, eq=False)
class Pattern(Node):
    """Base of the patterns of `match`."""


@dataclass(slots=True, eq=False)
class MatchValue(Pattern):
    value: Expr

    def children(self) -> list[Node]:
        return [self.value]


@dataclass(slots=True, eq=False)
class MatchSequence(Pattern):
    patterns: tuple[Pattern, ...]

    def children(self) -> list[Node]:
        return [*self.patterns]


@dataclass(slots=True, eq=False)
class MatchStar(Pattern):
    name: str | None


@dataclass(slots=True, eq=False)
class MatchMapping(Pattern):
    keys: tuple[Expr, ...]
    patterns: tuple[Pattern, ...]
    rest: str | None

    def children(self) -> list[Node]:
        return [*self.keys, *self.patterns]


@dataclass(slots=True, eq=False)
class MatchClass(Pattern):
    cls: Expr
    patterns: tuple[Pattern, ...]
    keywords: tuple[tuple[str, Pattern], ...]

    def children(self) -> list[Node]:
        return [self.cls, *self.patterns, *[pattern for _, pattern in self.keywords]]


@dataclass(slots=True, eq=False)
class MatchOr(Pattern):
    patterns: tuple[Pattern, ...]

    def children(self) -> list[Node]:
        return [*self.patterns]


@dataclass(slots=True, eq=False)
class MatchAs(Pattern):
    """`pattern as name`; both None is the wildcard `_`."""

    pattern: Pattern | None
    name: str | None

    def children(self) -> list[Node]:
        return some(self.pattern)
