"""Expressions of the loop program, and what every node has: its place in the file."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from galint.source import Span

NumberOrText = int | float | complex | str | bytes | bool | None


@dataclass(slots=True, eq=False)
class Node:
    """Anything with a place in the file."""

    span: Span

    def children(self) -> list[Node]:
        """The nodes directly below, in the order of the text."""
        return []


def some(*nodes: Node | None) -> list[Node]:
    """Those of `nodes` that are there."""
    return [node for node in nodes if node is not None]


@dataclass(slots=True, eq=False)
class Expr(Node):
    """Base of all expressions; `spelling` keeps what `text` found."""

    spelling: str | None = field(default=None, init=False, repr=False)


@dataclass(slots=True, eq=False)
class Name(Expr):
    id: str


@dataclass(slots=True, eq=False)
class Const(Expr):
    """A literal. `...` is the string-free value `Ellipsis`, kept as `None` with `ellipsis=True`."""

    value: NumberOrText
    ellipsis: bool = False


@dataclass(slots=True, eq=False)
class Attr(Expr):
    value: Expr
    name: str

    def children(self) -> list[Node]:
        return [self.value]


@dataclass(slots=True, eq=False)
class Subscript(Expr):
    value: Expr
    index: Expr

    def children(self) -> list[Node]:
        return [self.value, self.index]


@dataclass(slots=True, eq=False)
class Slice(Expr):
    lower: Expr | None
    upper: Expr | None
    step: Expr | None

    def children(self) -> list[Node]:
        return some(self.lower, self.upper, self.step)


@dataclass(slots=True, eq=False)
class Arg(Node):
    """One argument: `value`, `keyword=value`, `*value` (star="*") or `**value` (star="**")."""

    value: Expr
    keyword: str | None = None
    star: Literal["", "*", "**"] = ""

    def children(self) -> list[Node]:
        return [self.value]


@dataclass(slots=True, eq=False)
class Call(Expr):
    func: Expr
    args: tuple[Arg, ...]

    def children(self) -> list[Node]:
        return [self.func, *self.args]


@dataclass(slots=True, eq=False)
class BinOp(Expr):
    """`op` is the source spelling: + - * / // % ** @ & | ^ << >>."""

    op: str
    left: Expr
    right: Expr

    def children(self) -> list[Node]:
        return [self.left, self.right]


@dataclass(slots=True, eq=False)
class Unary(Expr):
    """`op` is one of: - + ~ not."""

    op: str
    operand: Expr

    def children(self) -> list[Node]:
        return [self.operand]


@dataclass(slots=True, eq=False)
class BoolOp(Expr):
    op: Literal["and", "or"]
    values: tuple[Expr, ...]

    def children(self) -> list[Node]:
        return [*self.values]


@dataclass(slots=True, eq=False)
class Compare(Expr):
    """`ops[k]` stands between operand k and k+1: == != < <= > >= is "is not" in "not in"."""

    left: Expr
    ops: tuple[str, ...]
    comparators: tuple[Expr, ...]

    def children(self) -> list[Node]:
        return [self.left, *self.comparators]


@dataclass(slots=True, eq=False)
class IfExp(Expr):
    test: Expr
    body: Expr
    orelse: Expr

    def children(self) -> list[Node]:
        return [self.test, self.body, self.orelse]


@dataclass(slots=True, eq=False)
class Sequence(Expr):
    """A tuple, list or set display."""

    kind: Literal["tuple", "list", "set"]
    elts: tuple[Expr, ...]

    def children(self) -> list[Node]:
        return [*self.elts]


@dataclass(slots=True, eq=False)
class Dict(Expr):
    """A dict display; a key of None marks `**value`."""

    keys: tuple[Expr | None, ...]
    values: tuple[Expr, ...]

    def children(self) -> list[Node]:
        return [*[n for n in self.keys if isinstance(n, Node)], *self.values]


@dataclass(slots=True, eq=False)
class CompFor(Node):
    target: Expr
    iter: Expr
    ifs: tuple[Expr, ...]
    is_async: bool = False

    def children(self) -> list[Node]:
        return [self.target, self.iter, *self.ifs]


@dataclass(slots=True, eq=False)
class Comp(Expr):
    """A comprehension or generator expression; `key` only for kind "dict"."""

    kind: Literal["list", "set", "gen", "dict"]
    elt: Expr
    key: Expr | None
    generators: tuple[CompFor, ...]

    def children(self) -> list[Node]:
        return [self.elt, *some(self.key), *self.generators]


@dataclass(slots=True, eq=False)
class Lambda(Expr):
    params: tuple[Param, ...]
    body: Expr

    def children(self) -> list[Node]:
        return [*self.params, self.body]


@dataclass(slots=True, eq=False)
class Starred(Expr):
    value: Expr

    def children(self) -> list[Node]:
        return [self.value]


@dataclass(slots=True, eq=False)
class NamedExpr(Expr):
    target: Name
    value: Expr

    def children(self) -> list[Node]:
        return [self.target, self.value]


@dataclass(slots=True, eq=False)
class FString(Expr):
    """An f-string: the expressions inside it (formats dropped)."""

    values: tuple[Expr, ...]

    def children(self) -> list[Node]:
        return [*self.values]


@dataclass(slots=True, eq=False)
class Await(Expr):
    value: Expr

    def children(self) -> list[Node]:
        return [self.value]


@dataclass(slots=True, eq=False)
class Yield(Expr):
    value: Expr | None

    def children(self) -> list[Node]:
        return some(self.value)


@dataclass(slots=True, eq=False)
class YieldFrom(Expr):
    value: Expr

    def children(self) -> list[Node]:
        return [self.value]


@dataclass(slots=True, eq=False)
class Param(Node):
    """A parameter; `kind` as in inspect: positional-only and positional-or-keyword are "arg"."""

    name: str
    kind: Literal["arg", "vararg", "kwonly", "kwarg"] = "arg"
    default: Expr | None = None
    annotation: Expr | None = None

    def children(self) -> list[Node]:
        return some(self.default, self.annotation)


def condition(test: Expr) -> Expr:
    """What an `if` asks: `(a) & (b > 0)` is `a and b > 0` there, for a mask of several elements has no truth."""
    if not isinstance(test, BinOp) or test.op not in {"&", "|"}:
        return test
    sides = tuple(condition(side) for side in (test.left, test.right))
    if not any(isinstance(s, (Compare, BoolOp)) or (isinstance(s, Unary) and s.op == "not") for s in sides):
        return test  # `flags & MASK`
    return BoolOp(test.span, "and" if test.op == "&" else "or", sides)
