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


@dataclass(slots=True, eq=False)
class Subscript(Expr):
    value: Expr
    index: Expr


@dataclass(slots=True, eq=False)
class Slice(Expr):
    lower: Expr | None
    upper: Expr | None
    step: Expr | None


@dataclass(slots=True, eq=False)
class Arg(Node):
    """One argument: `value`, `keyword=value`, `*value` (star="*") or `**value` (star="**")."""

    value: Expr
    keyword: str | None = None
    star: Literal["", "*", "**"] = ""


@dataclass(slots=True, eq=False)
class Call(Expr):
    func: Expr
    args: tuple[Arg, ...]


@dataclass(slots=True, eq=False)
class BinOp(Expr):
    """`op` is the source spelling: + - * / // % ** @ & | ^ << >>."""

    op: str
    left: Expr
    right: Expr


@dataclass(slots=True, eq=False)
class Unary(Expr):
    """`op` is one of: - + ~ not."""

    op: str
    operand: Expr


@dataclass(slots=True, eq=False)
class BoolOp(Expr):
    op: Literal["and", "or"]
    values: tuple[Expr, ...]


@dataclass(slots=True, eq=False)
class Compare(Expr):
    """`ops[k]` stands between operand k and k+1: == != < <= > >= is "is not" in "not in"."""

    left: Expr
    ops: tuple[str, ...]
    comparators: tuple[Expr, ...]


@dataclass(slots=True, eq=False)
class IfExp(Expr):
    test: Expr
    body: Expr
    orelse: Expr


@dataclass(slots=True, eq=False)
class Sequence(Expr):
    """A tuple, list or set display."""

    kind: Literal["tuple", "list", "set"]
    elts: tuple[Expr, ...]


@dataclass(slots=True, eq=False)
class Dict(Expr):
    """A dict display; a key of None marks `**value`."""

    keys: tuple[Expr | None, ...]
    values: tuple[Expr, ...]


@dataclass(slots=True, eq=False)
class CompFor(Node):
    target: Expr
    iter: Expr
    ifs: tuple[Expr, ...]
    is_async: bool = False


@dataclass(slots=True, eq=False)
class Comp(Expr):
    """A comprehension or generator expression; `key` only for kind "dict"."""

    kind: Literal["list", "set", "gen", "dict"]
    elt: Expr
    key: Expr | None
    generators: tuple[CompFor, ...]


@dataclass(slots=True, eq=False)
class Lambda(Expr):
    params: tuple[Param, ...]
    body: Expr


@dataclass(slots=True, eq=False)
class Starred(Expr):
    value: Expr


@dataclass(slots=True, eq=False)
class NamedExpr(Expr):
    target: Name
    value: Expr


@dataclass(slots=True, eq=False)
class FString(Expr):
    """An f-string: the expressions inside it (formats dropped)."""

    values: tuple[Expr, ...]


@dataclass(slots=True, eq=False)
class Await(Expr):
    value: Expr


@dataclass(slots=True, eq=False)
class Yield(Expr):
    value: Expr | None


@dataclass(slots=True, eq=False)
class YieldFrom(Expr):
    value: Expr


@dataclass(slots=True, eq=False)
class Param(Node):
    """A parameter; `kind` as in inspect: positional-only and positional-or-keyword are "arg"."""

    name: str
    kind: Literal["arg", "vararg", "kwonly", "kwarg"] = "arg"
    default: Expr | None = None
    annotation: Expr | None = None
