"""Lowers libcst statements to the loop program, one small function a node type."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import libcst as cst

from galint import program as p
from galint.syntax.cursor import Cursor
from galint.syntax.dispatch import expr, optional
from galint.syntax.expressions import arg, params
from galint.syntax.patterns import pattern

Lower = Callable[[Cursor, Any, int], p.Stmt | None]


def body(c: Cursor, nodes: Any) -> p.Body:
    """Lowers the statements of a module or an indented block."""
    out: list[p.Stmt] = []
    for node in nodes:
        if type(node) is cst.SimpleStatementLine:
            for small in node.body:
                _append(c, small, out)
        else:
            _append(c, node, out)
    return tuple(out)


def _append(c: Cursor, node: Any, out: list[p.Stmt]) -> None:
    stmt = TABLE[type(node)](c, node, c.skip())
    if stmt is None:
        return
    out.append(stmt)
    if c.record is not None:
        c.record.append((stmt.span, node))


def _suite(c: Cursor, suite: Any) -> p.Body:
    if type(suite) is cst.IndentedBlock:
        return body(c, suite.body)
    out: list[p.Stmt] = []
    c.begin()
    for small in suite.body:
        _append(c, small, out)
    return tuple(out)


def _colon(c: Cursor, start: int) -> Any:
    """The span of a header: from its first word to its colon."""
    c.token(1)
    return c.span(start)


def _tail(c: Cursor, node: Any, width: int = 4) -> p.Body:
    """The body behind `else:` (4 letters) or `finally:` (7)."""
    if node is None:
        return ()
    c.token(width)
    c.token(1)
    return _suite(c, node.body)


# --- simple statements ---------------------------------------------------------------------------


def _expr(c: Cursor, node: cst.Expr, start: int) -> p.Stmt:
    value = expr(c, node.value)
    return p.alone(c.span(start), value)


def _assign(c: Cursor, node: cst.Assign, start: int) -> p.Stmt:
    targets = tuple([expr(c, target.target) for target in node.targets])
    value = expr(c, node.value)
    return p.Assign(c.span(start), targets, value)


def _aug_assign(c: Cursor, node: cst.AugAssign, start: int) -> p.Stmt:
    target = expr(c, node.target)
    op = AUGMENTED[type(node.operator)]
    c.token(len(op) + 1)
    value = expr(c, node.value)
    return p.AugAssign(c.span(start), target, op, value)


def _ann_assign(c: Cursor, node: cst.AnnAssign, start: int) -> p.Stmt:
    target = expr(c, node.target)
    annotation = expr(c, node.annotation.annotation)
    value = optional(c, node.value)
    return p.AnnAssign(c.span(start), target, annotation, value)


def _return(c: Cursor, node: cst.Return, start: int) -> p.Stmt:
    c.pos = start + 6
    value = optional(c, node.value)
    return p.Return(c.span(start), value)


def _raise(c: Cursor, node: cst.Raise, start: int) -> p.Stmt:
    c.pos = start + 5
    exc = optional(c, node.exc)
    if node.cause is not None:
        c.token(4)
        expr(c, node.cause.item)
    return p.Raise(c.span(start), exc)


def _assert(c: Cursor, node: cst.Assert, start: int) -> p.Stmt:
    c.pos = start + 6
    test = expr(c, node.test)
    optional(c, node.msg)
    return p.Assert(c.span(start), test)


def _del(c: Cursor, node: cst.Del, start: int) -> p.Stmt:
    c.pos = start + 3
    target = expr(c, node.target)
    several = isinstance(target, p.Sequence) and target.kind == "tuple" and not node.target.lpar
    targets = target.elts if several and isinstance(target, p.Sequence) else (target,)
    return p.Delete(c.span(start), targets)


def _pass(c: Cursor, node: cst.Pass, start: int) -> p.Stmt:
    c.pos = start + 4
    return p.Pass(c.span(start))


def _break(c: Cursor, node: cst.Break, start: int) -> p.Stmt:
    c.pos = start + 5
    return p.Break(c.span(start))


def _continue(c: Cursor, node: cst.Continue, start: int) -> p.Stmt:
    c.pos = start + 8
    return p.Continue(c.span(start))


def _scope(c: Cursor, node: cst.Global | cst.Nonlocal, start: int) -> p.Stmt:
    kind: Any = "global" if isinstance(node, cst.Global) else "nonlocal"
    c.pos = start + len(kind)
    names = [item.name.value for item in node.names]
    for name in names:
        c.token(len(name))
    return p.Scope(c.span(start), kind, tuple(names))


def _dotted(c: Cursor, node: Any) -> str:
    words: list[str] = []
    while isinstance(node, cst.Attribute):
        words.append(node.attr.value)
        node = node.value
    words.append(node.value)
    words.reverse()
    c.token(len(words[0]))
    for word in words[1:]:
        c.token(1)
        c.token(len(word))
    return ".".join(words)


def _alias(c: Cursor, node: cst.ImportAlias) -> tuple[str, str | None]:
    name = _dotted(c, node.name)
    if node.asname is None:
        return name, None
    c.token(2)
    return name, _dotted(c, node.asname.name)


def _import(c: Cursor, node: cst.Import, start: int) -> p.Stmt:
    c.pos = start + 6
    names = tuple([_alias(c, alias) for alias in node.names])
    return p.Import(c.span(start), names)


def _import_from(c: Cursor, node: cst.ImportFrom, start: int) -> p.Stmt:
    c.pos = start + 4
    for _ in node.relative:
        c.token(1)
    module = "" if node.module is None else _dotted(c, node.module)
    c.token(6)
    names: tuple[tuple[str, str | None], ...]
    if isinstance(node.names, cst.ImportStar):
        c.token(1)
        names = (("*", None),)
    else:
        if node.lpar is not None:
            c.token(1)
        names = tuple([_alias(c, alias) for alias in node.names])
        if node.rpar is not None:
            c.token(1)
    return p.ImportFrom(c.span(start), module, len(node.relative), names)


def _type_alias(c: Cursor, node: cst.TypeAlias, start: int) -> None:
    c.pos = start + 4
    c.token(len(node.name.value))
    _type_parameters(c, node.type_parameters)
    expr(c, node.value)


def _type_parameters(c: Cursor, node: cst.TypeParameters | None) -> None:
    """Moves over `[T: int = str, *Ts, **P]`; the loop program has no use for it."""
    if node is None:
        return
    c.token(1)
    for item in node.params:
        param = item.param
        if isinstance(param, cst.TypeVarTuple):
            c.token(1)
        elif isinstance(param, cst.ParamSpec):
            c.token(2)
        c.token(len(param.name.value))
        if isinstance(param, cst.TypeVar):
            optional(c, param.bound)
        if item.default is not None:
            if item.star:
                c.word(1)
            expr(c, item.default)
    c.token(1)


# --- compound statements -------------------------------------------------------------------------


def _if(c: Cursor, node: cst.If, start: int) -> p.Stmt:
    # A chain of `elif` nests to the right; a loop over it needs no deep recursion.
    chain: list[p.If] = []
    part: Any = node
    while isinstance(part, cst.If):
        if chain:
            start = c.skip()
        c.pos = start + (4 if chain else 2)
        test = expr(c, part.test)
        span = _colon(c, start)
        chain.append(p.If(span, p.condition(test), _suite(c, part.body), ()))
        if c.record is not None and len(chain) > 1:
            c.record.append((span, part))
        part = part.orelse
    chain[-1].orelse = _tail(c, part)
    for outer, inner in pairwise(chain):
        outer.orelse = (inner,)
    return chain[0]


def _for(c: Cursor, node: cst.For, start: int) -> p.Stmt:
    if node.asynchronous is not None:
        c.token(5)
    c.token(3)
    target = expr(c, node.target)
    c.token(2)
    source = expr(c, node.iter)
    span = _colon(c, start)
    inner = _suite(c, node.body)
    return p.For(span, target, source, inner, _tail(c, node.orelse), node.asynchronous is not None)


def _while(c: Cursor, node: cst.While, start: int) -> p.Stmt:
    c.pos = start + 5
    test = expr(c, node.test)
    span = _colon(c, start)
    inner = _suite(c, node.body)
    return p.While(span, test, inner, _tail(c, node.orelse))


def _with(c: Cursor, node: cst.With, start: int) -> p.Stmt:
    if node.asynchronous is not None:
        c.token(5)
    c.token(4)
    grouped = isinstance(node.lpar, cst.LeftParen)
    if grouped:
        c.token(1)
    items: list[p.WithItem] = []
    for item in node.items:
        begin = c.skip()
        context = expr(c, item.item)
        target: p.Expr | None = None
        if item.asname is not None:
            c.token(2)
            target = expr(c, item.asname.name)
        items.append(p.WithItem(c.span(begin), context, target))
    if grouped:
        c.token(1)
    span = _colon(c, start)
    return p.With(span, tuple(items), _suite(c, node.body), node.asynchronous is not None)


def _try(c: Cursor, node: cst.Try | cst.TryStar, start: int) -> p.Stmt:
    c.pos = start + 3
    span = _colon(c, start)
    inner = _suite(c, node.body)
    handlers = tuple([_handler(c, handler) for handler in node.handlers])
    orelse = _tail(c, node.orelse)
    return p.Try(span, inner, handlers, orelse, _tail(c, node.finalbody, 7))


def _handler(c: Cursor, node: cst.ExceptHandler | cst.ExceptStarHandler) -> p.Handler:
    start = c.token(6)
    if isinstance(node, cst.ExceptStarHandler):
        c.token(1)
    kind = optional(c, node.type)
    name: str | None = None
    if node.name is not None:
        c.token(2)
        name = _dotted(c, node.name.name)
    return p.Handler(_colon(c, start), kind, name, _suite(c, node.body))


def _decorators(c: Cursor, nodes: Any) -> tuple[p.Expr, ...]:
    out: list[p.Expr] = []
    for node in nodes:
        c.token(1)
        out.append(expr(c, node.decorator))
    return tuple(out)


def _function(c: Cursor, node: cst.FunctionDef, start: int) -> p.Stmt:
    decorators = _decorators(c, node.decorators)
    start = c.skip()
    if node.asynchronous is not None:
        c.token(5)
    c.token(3)
    name = node.name.value
    c.token(len(name))
    _type_parameters(c, node.type_parameters)
    c.token(1)
    parameters = params(c, node.params)
    c.token(1)
    returns: p.Expr | None = None
    if node.returns is not None:
        c.token(2)
        returns = expr(c, node.returns.annotation)
    span = _colon(c, start)
    outer, c.yields = c.yields, False
    inner = _suite(c, node.body)
    generator, c.yields = c.yields, outer
    return p.FunctionDef(span, name, parameters, inner, decorators, returns, node.asynchronous is not None, generator)


def _class(c: Cursor, node: cst.ClassDef, start: int) -> p.Stmt:
    decorators = _decorators(c, node.decorators)
    start = c.token(5)
    c.token(len(node.name.value))
    _type_parameters(c, node.type_parameters)
    grouped = isinstance(node.lpar, cst.LeftParen)
    if grouped:
        c.token(1)
    bases = tuple([arg(c, a) for a in (*node.bases, *node.keywords)])
    if grouped:
        c.token(1)
    return p.ClassDef(_colon(c, start), node.name.value, bases, _suite(c, node.body), decorators)


def _match(c: Cursor, node: cst.Match, start: int) -> p.Stmt:
    c.pos = start + 5
    subject = expr(c, node.subject)
    span = _colon(c, start)
    cases: list[p.Case] = []
    for case in node.cases:
        begin = c.token(4)
        shape = pattern(c, case.pattern)
        guard: p.Expr | None = None
        if case.guard is not None:
            c.token(2)
            guard = expr(c, case.guard)
        cases.append(p.Case(_colon(c, begin), shape, guard, _suite(c, case.body)))
    return p.Match(span, subject, tuple(cases))


AUGMENTED: dict[type, str] = {
    cst.AddAssign: "+", cst.SubtractAssign: "-", cst.MultiplyAssign: "*", cst.DivideAssign: "/",
    cst.FloorDivideAssign: "//", cst.ModuloAssign: "%", cst.PowerAssign: "**",
    cst.MatrixMultiplyAssign: "@", cst.BitAndAssign: "&", cst.BitOrAssign: "|", cst.BitXorAssign: "^",
    cst.LeftShiftAssign: "<<", cst.RightShiftAssign: ">>",
}  # fmt: skip
TABLE: dict[type, Lower] = {
    cst.Expr: _expr, cst.Assign: _assign, cst.AugAssign: _aug_assign, cst.AnnAssign: _ann_assign,
    cst.Return: _return, cst.Raise: _raise, cst.Assert: _assert, cst.Del: _del, cst.Pass: _pass,
    cst.Break: _break, cst.Continue: _continue, cst.Global: _scope, cst.Nonlocal: _scope,
    cst.Import: _import, cst.ImportFrom: _import_from, cst.TypeAlias: _type_alias,
    cst.If: _if, cst.For: _for, cst.While: _while, cst.With: _with, cst.Try: _try, cst.TryStar: _try,
    cst.FunctionDef: _function, cst.ClassDef: _class, cst.Match: _match,
}  # fmt: skip
