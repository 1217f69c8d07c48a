"""Lowers libcst expressions to the loop program, one small function a node type."""

from __future__ import annotations

from typing import Any

import libcst as cst

from galint import program as p
from galint.syntax import literals
from galint.syntax.cursor import Cursor
from galint.syntax.dispatch import TABLE, Lower, expr, optional
from galint.syntax.strings import concatenated, formatted, simple

OPERATORS: dict[type, str] = {
    cst.Add: "+", cst.Subtract: "-", cst.Multiply: "*", cst.Divide: "/", cst.FloorDivide: "//",
    cst.Modulo: "%", cst.Power: "**", cst.MatrixMultiply: "@", cst.BitAnd: "&", cst.BitOr: "|",
    cst.BitXor: "^", cst.LeftShift: "<<", cst.RightShift: ">>",
    cst.Equal: "==", cst.NotEqual: "!=", cst.LessThan: "<", cst.LessThanEqual: "<=",
    cst.GreaterThan: ">", cst.GreaterThanEqual: ">=", cst.Is: "is", cst.IsNot: "is not",
    cst.In: "in", cst.NotIn: "not in",
    cst.Plus: "+", cst.Minus: "-", cst.BitInvert: "~", cst.Not: "not",
}  # fmt: skip
_SINGLETONS = {"True": True, "False": False, "None": None}


def _name(c: Cursor, node: cst.Name, start: int) -> p.Expr:
    name = node.value
    c.pos = start + len(name)
    if name in _SINGLETONS:
        return p.Const(c.span(start), _SINGLETONS[name])
    return p.Name(c.span(start), name)


def _ellipsis(c: Cursor, node: cst.Ellipsis, start: int) -> p.Expr:
    c.pos = start + 3
    return p.Const(c.span(start), None, True)


def _integer(c: Cursor, node: cst.Integer, start: int) -> p.Expr:
    c.pos = start + len(node.value)
    return p.Const(c.span(start), literals.integer(node.value))


def _float(c: Cursor, node: cst.Float, start: int) -> p.Expr:
    c.pos = start + len(node.value)
    return p.Const(c.span(start), float(node.value.replace("_", "")))


def _imaginary(c: Cursor, node: cst.Imaginary, start: int) -> p.Expr:
    c.pos = start + len(node.value)
    return p.Const(c.span(start), literals.imaginary(node.value))


def _attribute(c: Cursor, node: cst.Attribute, start: int) -> p.Expr:
    value = expr(c, node.value)
    name = node.attr.value
    c.token(1)
    c.token(len(name))
    return p.Attr(c.span(start), value, name)


def arg(c: Cursor, node: cst.Arg) -> p.Arg:
    """Lowers one argument of a call or a class header."""
    start = c.begin()
    keyword: str | None = None
    if node.keyword is not None:
        keyword = node.keyword.value
        c.pos = start + len(keyword)
    else:
        c.pos = start + len(node.star)
    out = p.Arg(c.span(start), expr(c, node.value), keyword, node.star)
    out.span = c.span(start)
    return out


def _call(c: Cursor, node: cst.Call, start: int) -> p.Expr:
    func = expr(c, node.func)
    opened = c.token(1)
    args = tuple([arg(c, a) for a in node.args])
    c.token(1)
    span = c.span(start)
    if len(args) == 1 and type(node.args[0].value) is cst.GeneratorExp and not node.args[0].value.lpar:
        args[0].value.span = c.span(opened)  # a lone generator shares the call's parentheses
    return p.Call(span, func, args)


def _subscript(c: Cursor, node: cst.Subscript, start: int) -> p.Expr:
    value = expr(c, node.value)
    c.token(1)
    first = c.skip()
    elements = node.slice
    items = tuple([_subscript_element(c, e.slice) for e in elements])
    if len(items) == 1 and not isinstance(elements[0].comma, cst.Comma) and not isinstance(items[0], p.Starred):
        index = items[0]
    else:
        if isinstance(elements[-1].comma, cst.Comma):
            end = c.pos
            c.pos = c.text.index(",", end) + 1 if c.text[end] != "," else end + 1
        index = p.Sequence(c.span(first), "tuple", items)
    c.token(1)
    return p.Subscript(c.span(start), value, index)


def _subscript_element(c: Cursor, node: cst.BaseSlice) -> p.Expr:
    start = c.skip()
    if isinstance(node, cst.Index):
        if node.star:
            c.pos = start + 1
            value = expr(c, node.value)
            return p.Starred(c.span(start), value)
        return expr(c, node.value)
    assert isinstance(node, cst.Slice)
    lower = optional(c, node.lower)
    c.token(1)
    upper = optional(c, node.upper)
    if isinstance(node.second_colon, cst.Colon):
        c.token(1)
    step = optional(c, node.step)
    return p.Slice(c.span(start), lower, upper, step)


def _binary(c: Cursor, node: cst.BinaryOperation, start: int) -> p.Expr:
    # A long chain leans left; a loop over its spine needs no deep recursion.
    spine = [node]
    while type(node.left) is cst.BinaryOperation and not node.left.lpar:
        node = node.left
        spine.append(node)
    out = expr(c, node.left)
    for part in reversed(spine):
        op = OPERATORS[type(part.operator)]
        c.token(len(op))
        right = expr(c, part.right)
        out = p.BinOp(c.span(start), op, out, right)
        if c.record is not None and part is not spine[0]:
            c.record.append((out.span, part))
    return out


def _unary(c: Cursor, node: cst.UnaryOperation, start: int) -> p.Expr:
    op = OPERATORS[type(node.operator)]
    c.pos = start + len(op)
    operand = expr(c, node.expression)
    return p.Unary(c.span(start), op, operand)


def _boolean(c: Cursor, node: cst.BooleanOperation, start: int) -> p.Expr:
    kind = type(node.operator)
    rights = [node.right]
    left = node.left
    while type(left) is cst.BooleanOperation and type(left.operator) is kind and not left.lpar:
        rights.append(left.right)
        left = left.left
    values = [expr(c, left)]
    width = 3 if kind is cst.And else 2
    for right in reversed(rights):
        c.token(width)
        values.append(expr(c, right))
    return p.BoolOp(c.span(start), "and" if kind is cst.And else "or", tuple(values))


def _comparison(c: Cursor, node: cst.Comparison, start: int) -> p.Expr:
    left = expr(c, node.left)
    ops: list[str] = []
    others: list[p.Expr] = []
    for target in node.comparisons:
        op = OPERATORS[type(target.operator)]
        ops.append(op)
        for word in op.split():
            c.token(len(word))
        others.append(expr(c, target.comparator))
    return p.Compare(c.span(start), left, tuple(ops), tuple(others))


def _ifexp(c: Cursor, node: cst.IfExp, start: int) -> p.Expr:
    body = expr(c, node.body)
    c.token(2)
    test = expr(c, node.test)
    c.token(4)
    orelse = expr(c, node.orelse)
    return p.IfExp(c.span(start), test, body, orelse)


def _element(c: Cursor, node: Any) -> p.Expr:
    if type(node) is cst.StarredElement:
        return expr(c, node)
    return expr(c, node.value)


def _starred(c: Cursor, node: cst.StarredElement, start: int) -> p.Expr:
    c.pos = start + 1
    value = expr(c, node.value)
    return p.Starred(c.span(start), value)


def _tuple(c: Cursor, node: cst.Tuple, start: int) -> p.Expr:
    elts = tuple([_element(c, e) for e in node.elements])
    if elts and not node.lpar and isinstance(node.elements[-1].comma, cst.Comma):
        before = node.elements[-1].comma.whitespace_before
        c.pos = c.pos + 1 if before.empty else c.text.index(",", c.pos) + 1
    return p.Sequence(c.span(start), "tuple", elts)


def _list(c: Cursor, node: cst.List, start: int) -> p.Expr:
    c.pos = start + 1
    elts = tuple([_element(c, e) for e in node.elements])
    c.token(1)
    return p.Sequence(c.span(start), "list", elts)


def _set(c: Cursor, node: cst.Set, start: int) -> p.Expr:
    c.pos = start + 1
    elts = tuple([_element(c, e) for e in node.elements])
    c.token(1)
    return p.Sequence(c.span(start), "set", elts)


def _dict(c: Cursor, node: cst.Dict, start: int) -> p.Expr:
    c.pos = start + 1
    keys: list[p.Expr | None] = []
    values: list[p.Expr] = []
    for element in node.elements:
        if isinstance(element, cst.DictElement):
            keys.append(expr(c, element.key))
        else:
            keys.append(None)
            c.token(2)
        values.append(expr(c, element.value))
    c.token(1)
    return p.Dict(c.span(start), tuple(keys), tuple(values))


def _generators(c: Cursor, node: cst.CompFor | None) -> tuple[p.CompFor, ...]:
    out: list[p.CompFor] = []
    while node is not None:
        if node.asynchronous is not None:
            c.token(5)
        c.token(3)
        start = c.begin()
        target = expr(c, node.target)
        c.token(2)
        source = expr(c, node.iter)
        ifs: list[p.Expr] = []
        for clause in node.ifs:
            c.token(2)
            ifs.append(expr(c, clause.test))
        out.append(p.CompFor(c.span(start), target, source, tuple(ifs), node.asynchronous is not None))
        node = node.inner_for_in
    return tuple(out)


def _comprehension(c: Cursor, node: Any, start: int) -> p.Expr:
    kind = _COMPREHENSIONS[type(node)]
    key: p.Expr | None = None
    if kind != "gen":
        c.pos = start + 1
    if kind == "dict":
        key = expr(c, node.key)
        elt = expr(c, node.value)
    else:
        elt = expr(c, node.elt)
    generators = _generators(c, node.for_in)
    if kind != "gen":
        c.token(1)
    return p.Comp(c.span(start), kind, elt, key, generators)


def params(c: Cursor, node: cst.Parameters) -> tuple[p.Param, ...]:
    """Lowers a parameter list, without its parentheses."""
    out = [_param(c, q, "arg") for q in node.posonly_params]
    if isinstance(node.posonly_ind, cst.ParamSlash):
        c.token(1)
    out += [_param(c, q, "arg") for q in node.params]
    if isinstance(node.star_arg, cst.Param):
        out.append(_param(c, node.star_arg, "vararg"))
    elif isinstance(node.star_arg, cst.ParamStar):
        c.token(1)
    out += [_param(c, q, "kwonly") for q in node.kwonly_params]
    if node.star_kwarg is not None:
        out.append(_param(c, node.star_kwarg, "kwarg"))
    return tuple(out)


def _param(c: Cursor, node: cst.Param, kind: Any) -> p.Param:
    start = c.skip()
    if kind == "vararg":
        c.token(1)
    elif kind == "kwarg":
        c.token(2)
    name = node.name.value
    start = c.token(len(name))
    annotation = None if node.annotation is None else expr(c, node.annotation.annotation)
    default = optional(c, node.default)
    return p.Param(c.span(start), name, kind, default, annotation)


def _lambda(c: Cursor, node: cst.Lambda, start: int) -> p.Expr:
    c.pos = start + 6
    parameters = params(c, node.params)
    outer, c.yields = c.yields, False
    body = expr(c, node.body)
    c.yields = outer
    return p.Lambda(c.span(start), parameters, body)


def _named(c: Cursor, node: cst.NamedExpr, start: int) -> p.Expr:
    target = expr(c, node.target)
    assert isinstance(target, p.Name)
    value = expr(c, node.value)
    return p.NamedExpr(c.span(start), target, value)


def _await(c: Cursor, node: cst.Await, start: int) -> p.Expr:
    c.pos = start + 5
    value = expr(c, node.expression)
    return p.Await(c.span(start), value)


def _yield(c: Cursor, node: cst.Yield, start: int) -> p.Expr:
    c.yields = True
    c.pos = start + 5
    if isinstance(node.value, cst.From):
        c.token(4)
        source = expr(c, node.value.item)
        return p.YieldFrom(c.span(start), source)
    value = optional(c, node.value)
    return p.Yield(c.span(start), value)


_COMPREHENSIONS: dict[type, Any] = {
    cst.ListComp: "list", cst.SetComp: "set", cst.GeneratorExp: "gen", cst.DictComp: "dict",
}  # fmt: skip
table: dict[type, Lower] = {
    cst.Name: _name, cst.Attribute: _attribute, cst.Call: _call, cst.Subscript: _subscript,
    cst.Integer: _integer, cst.Float: _float, cst.Imaginary: _imaginary, cst.Ellipsis: _ellipsis,
    cst.SimpleString: simple, cst.FormattedString: formatted, cst.TemplatedString: formatted,
    cst.ConcatenatedString: concatenated, cst.BinaryOperation: _binary, cst.UnaryOperation: _unary,
    cst.BooleanOperation: _boolean, cst.Comparison: _comparison, cst.IfExp: _ifexp,
    cst.Tuple: _tuple, cst.List: _list, cst.Set: _set, cst.Dict: _dict, cst.StarredElement: _starred,
    cst.ListComp: _comprehension, cst.SetComp: _comprehension, cst.DictComp: _comprehension,
    cst.GeneratorExp: _comprehension, cst.Lambda: _lambda, cst.NamedExpr: _named,
    cst.Await: _await, cst.Yield: _yield,
}  # fmt: skip
TABLE.update(table)
