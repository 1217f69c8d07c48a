"""Expressions of the loop program as Python that only ever touches the stage: attributes and calls go through it."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from galint import program as p
from galint.errors import GalintError
from galint.run.nodes import terminal
from galint.source import Span

STAGE = "__galint__"
"""The name under which a slice knows its stage."""


class NoSlice(GalintError):
    """The skeleton holds something that a slice cannot do."""


def at(node: ast.AST, span: Span) -> ast.AST:
    """Give `node`, and what below it has no place yet, the user's line."""
    for inner in ast.walk(node):
        if "lineno" in getattr(inner, "_attributes", ()) and not hasattr(inner, "lineno"):
            inner.lineno = inner.end_lineno = span.row  # type: ignore[attr-defined]
            inner.col_offset, inner.end_col_offset = 0, 0  # type: ignore[attr-defined]
    return node


def const(value: object) -> ast.expr:
    """A literal."""
    return ast.Constant(value)  # type: ignore[arg-type]


def load(name: str) -> ast.expr:
    """A name that is read."""
    return ast.Name(name, ast.Load())


def staged(method: str, *args: ast.expr, keywords: Sequence[ast.keyword] = ()) -> ast.Call:
    """A call of the stage."""
    return ast.Call(ast.Attribute(load(STAGE), method, ast.Load()), list(args), list(keywords))


def place(span: Span) -> ast.expr:
    """A span's first row and column, by which the abstract run's decisions are found."""
    return ast.Tuple([const(span.row), const(span.column)], ast.Load())


def expr(node: p.Expr | None) -> ast.expr:
    """The Python expression for one of the loop program."""
    if node is None:
        return const(None)
    out = _expr(node)
    at(out, node.span)
    return out


def _expr(node: p.Expr) -> ast.expr:
    match node:
        case p.Name(id=name):
            return load(name)
        case p.Const(value=value, ellipsis=ellipsis):
            return const(... if ellipsis else value)
        case p.Attr(value=value, name=name):
            return staged("attr", expr(value), const(name))
        case p.Subscript(value=value, index=index):
            return staged("item", expr(value), expr(index), const(p.text(node)))
        case p.Slice(lower=lower, upper=upper, step=step):
            return staged("slice", expr(lower), expr(upper), expr(step))
        case p.Call():
            return _call(node)
        case p.BinOp(op=op, left=left, right=right):
            return staged("operate", const(op), expr(left), expr(right), const(p.text(node)))
        case p.Unary(op="not", operand=operand):
            return ast.UnaryOp(ast.Not(), test(operand))
        case p.Unary(op=op, operand=operand):
            return staged("unary", const(op), expr(operand))
        case p.BoolOp(op=op, values=values):
            return ast.BoolOp(ast.And() if op == "and" else ast.Or(), [expr(v) for v in values])
        case p.Compare(left=left, ops=ops, comparators=comparators):
            return _compare(node, left, ops, comparators)
        case p.IfExp(test=condition, body=body, orelse=orelse):
            return ast.IfExp(test(condition, node.span), expr(body), expr(orelse))
        case p.Sequence(kind=kind, elts=elts):
            items = [expr(e) for e in elts]
            return ast.Tuple(items, ast.Load()) if kind == "tuple" else ast.List(items, ast.Load())
        case p.Starred(value=value):
            return ast.Starred(staged("spread", expr(value)), ast.Load())
        case p.Dict(keys=keys, values=values):
            pairs: list[ast.expr] = [
                ast.Tuple([expr(k) if k is not None else const(...), expr(v)], ast.Load())
                for k, v in zip(keys, values, strict=True)
            ]
            return staged("mapping", ast.List(pairs, ast.Load()))
        case p.Comp():
            return _comprehension(node)
        case p.Lambda(params=params, body=body):
            return ast.Lambda(arguments(params), expr(body))
        case p.NamedExpr(target=target, value=value):
            return ast.NamedExpr(ast.Name(target.id, ast.Store()), expr(value))
        case p.FString():
            return const("")
        case p.Await(value=value):
            return expr(value)
        case p.Yield(value=inner):
            return ast.Yield(expr(inner))
        case p.YieldFrom(value=value):
            return ast.YieldFrom(staged("spread", expr(value)))
    raise NoSlice(f"`{p.text(node)}` at line {node.span.row}")


def test(node: p.Expr, span: Span | None = None, default: bool | None = None, weighs: bool = False) -> ast.expr:
    """An expression whose truth decides something: what the stage cannot know, the abstract run has decided.

    `weighs` says that gradients hang on it.
    """
    if isinstance(node, p.Unary) and node.op == "not":
        inner = test(node.operand, span or node.span, None if default is None else not default, weighs)
        return ast.UnaryOp(ast.Not(), inner)
    where = place(span or node.span)
    return staged("truth", expr(node), const(p.text(node)), where, const(default), const(weighs))


def _call(node: p.Call) -> ast.expr:
    args: list[ast.expr] = [expr(node.func), const(p.text(node))]
    keywords: list[ast.keyword] = []
    for arg in node.args:
        if arg.star == "*":
            args.append(ast.Starred(staged("spread", expr(arg.value)), ast.Load()))
        elif arg.star == "**":
            keywords.append(ast.keyword(None, staged("keywords", expr(arg.value))))
        elif arg.keyword:
            keywords.append(ast.keyword(arg.keyword, expr(arg.value)))
        else:
            args.append(expr(arg.value))
    return staged("call", *args, keywords=keywords)


def _compare(node: p.Compare, left: p.Expr, ops: Sequence[str], comparators: Sequence[p.Expr]) -> ast.expr:
    parts: list[ast.expr] = []
    for op, right in zip(ops, comparators, strict=True):
        parts.append(staged("compare", const(op), expr(left), expr(right), const(p.text(node))))
        left = right
    return parts[0] if len(parts) == 1 else ast.BoolOp(ast.And(), parts)


def _comprehension(node: p.Comp) -> ast.expr:
    generators = []
    for part in node.generators:
        target, shape = pattern(part.target)
        source = staged("iterate", expr(part.iter), place(part.iter.span), const("comp"), shape)
        generators.append(ast.comprehension(target, source, [test(c, None, True) for c in part.ifs], 0))
    if node.kind == "dict" and node.key is not None:
        pair = ast.Tuple([expr(node.key), expr(node.elt)], ast.Load())
        return staged("mapping", ast.ListComp(pair, generators))
    if node.kind == "gen":
        return ast.GeneratorExp(expr(node.elt), generators)
    return ast.ListComp(expr(node.elt), generators)


def pattern(target: p.Expr) -> tuple[ast.expr, ast.expr]:
    """A native assignment target, and the shape that the stage must unpack a value to.

    Targets that are not names get a hidden one; `hidden` tells them.
    """
    match target:
        case p.Name(id=name):
            return ast.Name(name, ast.Store()), const(name)
        case p.Sequence(elts=elts):
            parts = [pattern(e) for e in elts]
            return ast.Tuple([t for t, _ in parts], ast.Store()), ast.Tuple([s for _, s in parts], ast.Load())
        case p.Starred(value=value):
            inner, _ = pattern(value)
            return ast.Starred(inner, ast.Store()), const("*")
    return ast.Name(hidden(target), ast.Store()), const(terminal(target))


def hidden(target: p.Expr) -> str:
    """The name that holds a value before the stage puts it where `target` says."""
    return f"__{target.span.row}_{target.span.column}__"


def arguments(params: Sequence[p.Param]) -> ast.arguments:
    """A signature; constant defaults are settings, which the scenario may give another number."""
    positional = [q for q in params if q.kind == "arg"]
    only = [q for q in params if q.kind == "kwonly"]
    variadic = next((q for q in params if q.kind == "vararg"), None)
    keywords = next((q for q in params if q.kind == "kwarg"), None)
    # Every parameter gets a default: what a caller leaves out is unknown, not an error.
    return ast.arguments(
        [],
        [ast.arg(q.name) for q in positional],
        ast.arg(variadic.name) if variadic else None,
        [ast.arg(q.name) for q in only],
        [_default(q) for q in only],
        ast.arg(keywords.name) if keywords else None,
        [_default(q) for q in positional],
    )


def _default(param: p.Param) -> ast.expr:
    hint = p.text(param.annotation)
    if param.default is None:
        return staged("free", const(param.name), const(hint))
    return staged("given", const(param.name), expr(param.default))


def composed(path: str) -> bool:
    """Whether a spelling is an operation: a blank outside all brackets."""
    depth = 0
    for char in path:
        depth += (char in "([{") - (char in ")]}")
        if char == " " and not depth:
            return True
    return False
