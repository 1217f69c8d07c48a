"""Lowers expressions of CPython's own syntax tree to the loop program; the spans are those of libcst's lowering."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Callable
from typing import Any

from galint import program as p
from galint.source import Span
from galint.syntax.fields import Field, fields
from galint.syntax.guard import MAX_CHAIN
from galint.syntax.places import Places, Unsupported

OPERATORS: dict[type, str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**",
    ast.MatMult: "@", ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^", ast.LShift: "<<", ast.RShift: ">>",
    ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Is: "is",
    ast.IsNot: "is not", ast.In: "in", ast.NotIn: "not in", ast.UAdd: "+", ast.USub: "-", ast.Invert: "~",
    ast.Not: "not",
}  # fmt: skip
_EXACT_FIELDS = sys.version_info >= (3, 12)
"""Before 3.12 CPython gives wrong places inside f-strings."""
_closing = re.compile(r"(?:[ \t\f\r\n\\]|#[^\r\n]*)*\)").match


def expr(c: Places, node: Any) -> p.Expr:
    """Lowers one expression. Raises Unsupported for a node that this module does not know, and for depth."""
    lower = _TABLE.get(type(node))
    c.depth += 1
    if lower is None or c.depth > MAX_CHAIN:
        raise Unsupported
    out = lower(c, node)
    c.depth -= 1
    return out


def optional(c: Places, node: Any) -> p.Expr | None:
    """Lowers `node` unless it is None."""
    return None if node is None else expr(c, node)


def _all(c: Places, nodes: Any) -> tuple[p.Expr, ...]:
    return tuple([expr(c, node) for node in nodes])


def _name(c: Places, node: ast.Name) -> p.Expr:
    return p.Name(c.span(node), node.id)


def _constant(c: Places, node: ast.Constant) -> p.Expr:
    if node.value is ...:
        return p.Const(c.span(node), None, True)
    return p.Const(c.span(node), node.value)


def _attribute(c: Places, node: ast.Attribute) -> p.Expr:
    return p.Attr(c.span(node), expr(c, node.value), node.attr)


def _call(c: Places, node: ast.Call) -> p.Expr:
    func = expr(c, node.func)
    if not node.args and not node.keywords:
        return p.Call(c.span(node), func, ())
    opened = c.opened(c.end(node.func))
    lone = len(node.args) == 1 and not node.keywords and isinstance(node.args[0], ast.GeneratorExp)
    if lone and c.start(node.args[0]) == opened - 1:  # a lone generator shares the call's parentheses
        value = expr(c, node.args[0])
        inner = value.generators[-1].span if isinstance(value, p.Comp) else value.span
        span = c.between(c.argument(opened), opened)
        return p.Call(c.span(node), func, (p.Arg(Span(span.row, span.column, inner.end_row, inner.end_column), value),))
    return p.Call(c.span(node), func, arguments(c, node, opened))


def arguments(c: Places, node: ast.Call | ast.ClassDef, offset: int) -> tuple[p.Arg, ...]:
    """Lowers the arguments of a call or a class header, `offset` being behind its opening parenthesis."""
    given: list[Any] = [*(node.args if isinstance(node, ast.Call) else node.bases), *node.keywords]
    if node.keywords:
        given.sort(key=_position)
    out: list[p.Arg] = []
    for item in given:
        kind = type(item)
        if kind is ast.keyword:
            out.append(p.Arg(c.span(item), expr(c, item.value), item.arg, "" if item.arg else "**"))
        elif kind is ast.Starred:
            out.append(p.Arg(c.span(item), expr(c, item.value), None, "*"))
        else:
            begin, start, end = c.argument(offset), c.start(item), c.end(item)
            if begin < start:  # the argument's own parentheses belong to its span
                for _ in range(c.text.count("(", begin, start)):
                    end = c.match(_closing, end)
                out.append(p.Arg(c.between(begin, end), expr(c, item)))
                offset = end
                continue
            out.append(p.Arg(c.span(item), expr(c, item)))
        offset = c.end(item)
    return tuple(out)


def _position(node: Any) -> tuple[int, int]:
    return node.lineno, node.col_offset


def _subscript(c: Places, node: ast.Subscript) -> p.Expr:
    return p.Subscript(c.span(node), expr(c, node.value), expr(c, node.slice))


def _slice(c: Places, node: ast.Slice) -> p.Expr:
    return p.Slice(c.span(node), optional(c, node.lower), optional(c, node.upper), optional(c, node.step))


def _binary(c: Places, node: ast.BinOp) -> p.Expr:
    # A long chain leans left; a loop over its spine needs no deep recursion.
    spine = [node]
    while type(node.left) is ast.BinOp:
        node = node.left
        spine.append(node)
    if len(spine) > MAX_CHAIN:
        raise Unsupported
    out = expr(c, node.left)
    for part in reversed(spine):
        out = p.BinOp(c.span(part), OPERATORS[type(part.op)], out, expr(c, part.right))
    return out


def _unary(c: Places, node: ast.UnaryOp) -> p.Expr:
    return p.Unary(c.span(node), OPERATORS[type(node.op)], expr(c, node.operand))


def _boolean(c: Places, node: ast.BoolOp) -> p.Expr:
    return p.BoolOp(c.span(node), "and" if type(node.op) is ast.And else "or", _all(c, node.values))


def _comparison(c: Places, node: ast.Compare) -> p.Expr:
    ops = tuple([OPERATORS[type(op)] for op in node.ops])
    return p.Compare(c.span(node), expr(c, node.left), ops, _all(c, node.comparators))


def _ifexp(c: Places, node: ast.IfExp) -> p.Expr:
    return p.IfExp(c.span(node), expr(c, node.test), expr(c, node.body), expr(c, node.orelse))


def _display(c: Places, node: Any) -> p.Expr:
    return p.Sequence(c.span(node), _DISPLAYS[type(node)], _all(c, node.elts))


def _dict(c: Places, node: ast.Dict) -> p.Expr:
    return p.Dict(c.span(node), tuple([optional(c, key) for key in node.keys]), _all(c, node.values))


def _comprehension(c: Places, node: Any) -> p.Expr:
    generators: list[p.CompFor] = []
    for part in node.generators:
        target, source, ifs = expr(c, part.target), expr(c, part.iter), _all(c, part.ifs)
        last = ifs[-1].span if ifs else source.span
        span = Span(target.span.row, target.span.column, last.end_row, last.end_column)
        generators.append(p.CompFor(span, target, source, ifs, bool(part.is_async)))
    kind = _COMPREHENSIONS[type(node)]
    if kind == "dict":
        return p.Comp(c.span(node), kind, expr(c, node.value), expr(c, node.key), tuple(generators))
    return p.Comp(c.span(node), kind, expr(c, node.elt), None, tuple(generators))


def params(c: Places, node: ast.arguments) -> tuple[p.Param, ...]:
    """Lowers a parameter list."""
    named = [*node.posonlyargs, *node.args]
    defaults = [*[None] * (len(named) - len(node.defaults)), *node.defaults]
    out = [_param(c, item, "arg", default) for item, default in zip(named, defaults, strict=True)]
    if node.vararg is not None:
        out.append(_param(c, node.vararg, "vararg", None))
    out += [_param(c, a, "kwonly", d) for a, d in zip(node.kwonlyargs, node.kw_defaults, strict=True)]
    if node.kwarg is not None:
        out.append(_param(c, node.kwarg, "kwarg", None))
    return tuple(out)


def _param(c: Places, node: ast.arg, kind: Any, default: ast.expr | None) -> p.Param:
    value = optional(c, default)
    span = c.span(node)
    if value is not None:
        span = Span(span.row, span.column, value.span.end_row, value.span.end_column)
    return p.Param(span, node.arg, kind, value, optional(c, node.annotation))


def _lambda(c: Places, node: ast.Lambda) -> p.Expr:
    parameters = params(c, node.args)
    outer, c.yields = c.yields, False
    body = expr(c, node.body)
    c.yields = outer
    return p.Lambda(c.span(node), parameters, body)


def _starred(c: Places, node: ast.Starred) -> p.Expr:
    return p.Starred(c.span(node), expr(c, node.value))


def _named(c: Places, node: ast.NamedExpr) -> p.Expr:
    return p.NamedExpr(c.span(node), p.Name(c.span(node.target), node.target.id), expr(c, node.value))


def _await(c: Places, node: ast.Await) -> p.Expr:
    return p.Await(c.span(node), expr(c, node.value))


def _yield(c: Places, node: ast.Yield) -> p.Expr:
    c.yields = True
    return p.Yield(c.span(node), optional(c, node.value))


def _yield_from(c: Places, node: ast.YieldFrom) -> p.Expr:
    c.yields = True
    return p.YieldFrom(c.span(node), expr(c, node.value))


def _formatted(c: Places, node: ast.JoinedStr) -> p.Expr:
    if not any(type(value) is ast.FormattedValue for value in node.values):
        return p.FString(c.span(node), ())
    if _EXACT_FIELDS:
        inside = c.text[c.start(node) : c.end(node)].lstrip("fFrRbBuU")
        # From 3.12 on a field may hold comments and the f-string's own quotes, which no pattern can tell apart.
        c.unsure = c.unsure or "#" in inside or inside[0] in inside.strip("'\"")
        return p.FString(c.span(node), tuple(_values(c, node)))
    return p.FString(c.span(node), tuple([_field(c, field) for field in fields(c.text, c.start(node), c.end(node))]))


def _values(c: Places, node: ast.JoinedStr) -> list[p.Expr]:
    out: list[p.Expr] = []
    for value in node.values:
        if isinstance(value, ast.FormattedValue):
            out.append(expr(c, value.value))
            if isinstance(value.format_spec, ast.JoinedStr):
                out += _values(c, value.format_spec)
    return out


def _field(c: Places, field: Field) -> p.Expr:
    """The expression of one replacement field, parsed on its own for the sake of its place."""
    span = c.between(field.start, field.end)
    if field.text.isidentifier() and field.text not in {"None", "True", "False"}:
        return p.Name(span, field.text)
    text = f"({field.text})"
    tree = compile(text, "<field>", "eval", ast.PyCF_ONLY_AST, dont_inherit=True)
    assert isinstance(tree, ast.Expression)
    part = Places(text, span.row - 1, span.column - 1)
    out = expr(part, tree.body)
    if isinstance(tree.body, ast.Tuple) and not tree.body.col_offset and tree.body.lineno == 1:
        out.span = span  # `{a, b}`: the parentheses are ours
    c.yields = c.yields or part.yields
    return out


_DISPLAYS: dict[type, Any] = {ast.Tuple: "tuple", ast.List: "list", ast.Set: "set"}
_COMPREHENSIONS: dict[type, Any] = {
    ast.ListComp: "list", ast.SetComp: "set", ast.GeneratorExp: "gen", ast.DictComp: "dict",
}  # fmt: skip
_TABLE: dict[type, Callable[[Places, Any], p.Expr]] = {
    ast.Name: _name, ast.Constant: _constant, ast.Attribute: _attribute, ast.Call: _call,
    ast.Subscript: _subscript, ast.Slice: _slice, ast.BinOp: _binary, ast.UnaryOp: _unary, ast.BoolOp: _boolean,
    ast.Compare: _comparison, ast.IfExp: _ifexp, ast.Tuple: _display, ast.List: _display, ast.Set: _display,
    ast.Dict: _dict, ast.ListComp: _comprehension, ast.SetComp: _comprehension, ast.DictComp: _comprehension,
    ast.GeneratorExp: _comprehension, ast.Lambda: _lambda, ast.Starred: _starred, ast.NamedExpr: _named,
    ast.Await: _await, ast.Yield: _yield, ast.YieldFrom: _yield_from, ast.JoinedStr: _formatted,
}  # fmt: skip
