"""The loop program: a small typed tree of what the abstract run needs, each node with its span.

It is Python's own grammar with the formatting taken away; `galint.syntax` lowers ast or libcst to it and
nothing above this module knows either. Nodes compare by identity. `text(expr)` gives the canonical
spelling of an expression, which is what configuration keys and messages use.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from galint.source import Span

NumberOrText = int | float | complex | str | bytes | bool | None


@dataclass(slots=True, eq=False)
class Node:
    """Anything with a place in the file."""

    span: Span


# --- expressions -------------------------------------------------------------------------------


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


# --- statements --------------------------------------------------------------------------------


@dataclass(slots=True, eq=False)
class Stmt(Node):
    """Base of all statements. The span of a compound statement covers its header only."""


Body = tuple[Stmt, ...]


@dataclass(slots=True, eq=False)
class ExprStmt(Stmt):
    value: Expr


@dataclass(slots=True, eq=False)
class Assign(Stmt):
    """`a = b = value` has two targets."""

    targets: tuple[Expr, ...]
    value: Expr


@dataclass(slots=True, eq=False)
class AugAssign(Stmt):
    """`target op= value`; `op` without the equals sign."""

    target: Expr
    op: str
    value: Expr


@dataclass(slots=True, eq=False)
class AnnAssign(Stmt):
    target: Expr
    annotation: Expr
    value: Expr | None


@dataclass(slots=True, eq=False)
class If(Stmt):
    test: Expr
    body: Body
    orelse: Body


@dataclass(slots=True, eq=False)
class For(Stmt):
    target: Expr
    iter: Expr
    body: Body
    orelse: Body
    is_async: bool = False


@dataclass(slots=True, eq=False)
class While(Stmt):
    test: Expr
    body: Body
    orelse: Body


@dataclass(slots=True, eq=False)
class WithItem(Node):
    context: Expr
    target: Expr | None


@dataclass(slots=True, eq=False)
class With(Stmt):
    items: tuple[WithItem, ...]
    body: Body
    is_async: bool = False


@dataclass(slots=True, eq=False)
class Handler(Node):
    type: Expr | None
    name: str | None
    body: Body


@dataclass(slots=True, eq=False)
class Try(Stmt):
    body: Body
    handlers: tuple[Handler, ...]
    orelse: Body
    final: Body


@dataclass(slots=True, eq=False)
class Param(Node):
    """A parameter; `kind` as in inspect: positional-only and positional-or-keyword are "arg"."""

    name: str
    kind: Literal["arg", "vararg", "kwonly", "kwarg"] = "arg"
    default: Expr | None = None
    annotation: Expr | None = None


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


@dataclass(slots=True, eq=False)
class ClassDef(Stmt):
    name: str
    bases: tuple[Arg, ...]
    body: Body
    decorators: tuple[Expr, ...] = ()


@dataclass(slots=True, eq=False)
class Return(Stmt):
    value: Expr | None


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


@dataclass(slots=True, eq=False)
class Assert(Stmt):
    test: Expr


@dataclass(slots=True, eq=False)
class Delete(Stmt):
    targets: tuple[Expr, ...]


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


# --- match -------------------------------------------------------------------------------------


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


@dataclass(slots=True, eq=False)
class Case(Node):
    pattern: Pattern
    guard: Expr | None
    body: Body


@dataclass(slots=True, eq=False)
class Match(Stmt):
    subject: Expr
    cases: tuple[Case, ...]


@dataclass(slots=True, eq=False)
class Program:
    """One file: its statements, and the comments that rules read (line → text without '#')."""

    body: Body
    comments: dict[int, str] = field(default_factory=dict)


def text(node: Expr | None) -> str:
    """The canonical spelling of `node` (single spaces, double quotes dropped to repr)."""
    if node is None:
        return ""
    if node.spelling is None:
        node.spelling = _spelled(node)
    return node.spelling


def _spelled(node: Expr) -> str:
    match node:
        case Name(id=name):
            return name
        case Const(ellipsis=True):
            return "..."
        case Const(value=value):
            return repr(value)
        case Attr(value=value, name=name):
            return f"{_atom(value)}.{name}"
        case Subscript(value=value, index=index):
            return f"{_atom(value)}[{text(index)}]"
        case Slice(lower=lower, upper=upper, step=step):
            return f"{text(lower)}:{text(upper)}" + (f":{text(step)}" if step else "")
        case Call(func=func, args=args):
            return f"{_atom(func)}({', '.join(map(_arg, args))})"
        case BinOp(op=op, left=left, right=right):
            return f"{_atom(left)} {op} {_atom(right)}"
        case Unary(op="not", operand=operand):
            return f"not {_atom(operand)}"
        case Unary(op=op, operand=operand):
            return f"{op}{_atom(operand)}"
        case BoolOp(op=op, values=values):
            return f" {op} ".join(map(_atom, values))
        case Compare(left=left, ops=ops, comparators=comparators):
            rest = "".join(f" {o} {_atom(c)}" for o, c in zip(ops, comparators, strict=True))
            return _atom(left) + rest
        case IfExp(test=test, body=body, orelse=orelse):
            return f"{_atom(body)} if {_atom(test)} else {_atom(orelse)}"
        case Sequence(kind="tuple", elts=elts):
            return f"({', '.join(map(text, elts))}{',' if len(elts) == 1 else ''})"
        case Sequence(kind="list", elts=elts):
            return f"[{', '.join(map(text, elts))}]"
        case Sequence(elts=elts):
            return f"{{{', '.join(map(text, elts))}}}"
        case Dict(keys=keys, values=values):
            pairs = (f"{text(k)}: {text(v)}" if k else f"**{text(v)}" for k, v in zip(keys, values, strict=True))
            return f"{{{', '.join(pairs)}}}"
        case Comp(elt=elt, generators=generators):
            return f"({text(elt)}{''.join(f' for {text(g.target)} in {text(g.iter)}' for g in generators)})"
        case Lambda(body=body):
            return f"lambda: {text(body)}"
        case Starred(value=value):
            return f"*{_atom(value)}"
        case NamedExpr(target=target, value=value):
            return f"({target.id} := {text(value)})"
        case FString():
            return "f'...'"
        case Await(value=value):
            return f"await {_atom(value)}"
        case Yield(value=value):
            return f"(yield {text(value)})"
        case YieldFrom(value=value):
            return f"(yield from {text(value)})"
        case _:
            return "?"


def _arg(arg: Arg) -> str:
    prefix = f"{arg.keyword}=" if arg.keyword else arg.star
    return prefix + text(arg.value)


def _atom(node: Expr) -> str:
    if isinstance(node, BinOp | BoolOp | Compare | IfExp | Lambda | Unary | Starred | Await):
        return f"({text(node)})"
    return text(node)
