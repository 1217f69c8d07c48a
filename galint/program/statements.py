"""Statements of the loop program, and the program itself."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from galint.program.expressions import Arg, Call, Const, Expr, IfExp, Node, Param, condition, some
from galint.program.patterns import Pattern
from galint.source import Span


@dataclass(slots=True, eq=False)
class Stmt(Node):
    """Base of all statements. The span of a compound statement covers its header only."""


Body = tuple[Stmt, ...]


@dataclass(slots=True, eq=False)
class ExprStmt(Stmt):
    value: Expr

    def children(self) -> list[Node]:
        return [self.value]


@dataclass(slots=True, eq=False)
class Assign(Stmt):
    """`a = b = value` has two targets."""

    targets: tuple[Expr, ...]
    value: Expr

    def children(self) -> list[Node]:
        return [*self.targets, self.value]


@dataclass(slots=True, eq=False)
class AugAssign(Stmt):
    """`target op= value`; `op` without the equals sign."""

    target: Expr
    op: str
    value: Expr

    def children(self) -> list[Node]:
        return [self.target, self.value]


@dataclass(slots=True, eq=False)
class AnnAssign(Stmt):
    target: Expr
    annotation: Expr
    value: Expr | None

    def children(self) -> list[Node]:
        return [self.target, self.annotation, *some(self.value)]


@dataclass(slots=True, eq=False)
class If(Stmt):
    test: Expr
    body: Body
    orelse: Body

    def children(self) -> list[Node]:
        return [self.test, *self.body, *self.orelse]


@dataclass(slots=True, eq=False)
class For(Stmt):
    target: Expr
    iter: Expr
    body: Body
    orelse: Body
    is_async: bool = False

    def children(self) -> list[Node]:
        return [self.target, self.iter, *self.body, *self.orelse]


@dataclass(slots=True, eq=False)
class While(Stmt):
    test: Expr
    body: Body
    orelse: Body

    def children(self) -> list[Node]:
        return [self.test, *self.body, *self.orelse]


@dataclass(slots=True, eq=False)
class WithItem(Node):
    context: Expr
    target: Expr | None

    def children(self) -> list[Node]:
        return [self.context, *some(self.target)]


@dataclass(slots=True, eq=False)
class With(Stmt):
    items: tuple[WithItem, ...]
    body: Body
    is_async: bool = False

    def children(self) -> list[Node]:
        return [*self.items, *self.body]


@dataclass(slots=True, eq=False)
class Handler(Node):
    type: Expr | None
    name: str | None
    body: Body

    def children(self) -> list[Node]:
        return [*some(self.type), *self.body]


@dataclass(slots=True, eq=False)
class Try(Stmt):
    body: Body
    handlers: tuple[Handler, ...]
    orelse: Body
    final: Body

    def children(self) -> list[Node]:
        return [*self.body, *self.handlers, *self.orelse, *self.final]


@dataclass(slots=True, eq=False)
class FunctionDef(Stmt):
    name: str
    params: tuple[Param, ...]
    body: Body
    decorators: tuple[Expr, ...] = ()
    returns: Expr | None = None
    is_async: bool = False
    is_generator: bool = False
    """True when the function's own body (not a nested one's) contains yield."""

    def children(self) -> list[Node]:
        return [*self.params, *self.body, *self.decorators, *some(self.returns)]


@dataclass(slots=True, eq=False)
class ClassDef(Stmt):
    name: str
    bases: tuple[Arg, ...]
    body: Body
    decorators: tuple[Expr, ...] = ()

    def children(self) -> list[Node]:
        return [*self.bases, *self.body, *self.decorators]


@dataclass(slots=True, eq=False)
class Return(Stmt):
    value: Expr | None

    def children(self) -> list[Node]:
        return some(self.value)


@dataclass(slots=True, eq=False)
class Break(Stmt):
    pass


@dataclass(slots=True, eq=False)
class Continue(Stmt):
    pass


@dataclass(slots=True, eq=False)
class Pass(Stmt):
    pass


@dataclass(slots=True, eq=False)
class Raise(Stmt):
    exc: Expr | None

    def children(self) -> list[Node]:
        return some(self.exc)


@dataclass(slots=True, eq=False)
class Assert(Stmt):
    test: Expr

    def children(self) -> list[Node]:
        return [self.test]


@dataclass(slots=True, eq=False)
class Delete(Stmt):
    targets: tuple[Expr, ...]

    def children(self) -> list[Node]:
        return [*self.targets]


@dataclass(slots=True, eq=False)
class Scope(Stmt):
    """`global` or `nonlocal`."""

    kind: Literal["global", "nonlocal"]
    names: tuple[str, ...]


@dataclass(slots=True, eq=False)
class Import(Stmt):
    """`import a.b as c` → (("a.b", "c"),); without `as` the second is None."""

    names: tuple[tuple[str, str | None], ...]


@dataclass(slots=True, eq=False)
class ImportFrom(Stmt):
    """`from ..m import a as b, *` → module "m", level 2, (("a", "b"), ("*", None))."""

    module: str
    level: int
    names: tuple[tuple[str, str | None], ...]


@dataclass(slots=True, eq=False)
class Case(Node):
    pattern: Pattern
    guard: Expr | None
    body: Body

    def children(self) -> list[Node]:
        return [self.pattern, *some(self.guard), *self.body]


@dataclass(slots=True, eq=False)
class Match(Stmt):
    subject: Expr
    cases: tuple[Case, ...]

    def children(self) -> list[Node]:
        return [self.subject, *self.cases]


@dataclass(slots=True, eq=False)
class Program:
    """One file: its statements, and the comments that rules read (line → text without '#')."""

    body: Body
    comments: dict[int, str] = field(default_factory=dict)

    def children(self) -> list[Node]:
        return [*self.body]


def alone(span: Span, value: Expr) -> Stmt:
    """The statement that an expression is by itself: `step() if full else None` is an `if`."""
    if not isinstance(value, IfExp) or not isinstance(value.body, Call):
        return ExprStmt(span, value)
    orelse = () if isinstance(value.orelse, Const) else (alone(value.orelse.span, value.orelse),)
    return If(span, condition(value.test), (alone(value.body.span, value.body),), orelse)
