"""Parses with CPython's own parser and lowers its tree to the loop program: some ten times as fast as libcst.

libcst is needed for fixes, for grammar newer than the running Python, and to say what is wrong with a text.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
import warnings
from bisect import bisect_right
from collections.abc import Callable
from itertools import pairwise
from typing import Any

from galint import program as p
from galint.syntax.guard import MAX_ELIFS
from galint.syntax.native_expressions import OPERATORS, arguments, expr, optional, params
from galint.syntax.places import Places, Unsupported

_to_name = re.compile(r"(?:async|def|class|[ \t\f\r\n\\]|#[^\r\n]*)+\w+").match
_to_named = re.compile(r"(?:[ \t\f\r\n\\(),*]|#[^\r\n]*)*(?:as\b(?:[ \t\f\r\n\\]|#[^\r\n]*)*\w+)?").match
_to_case = re.compile(r"(?:[ \t\f\r\n\\;]|#[^\r\n]*)*(?=case\b)").match
_literals_and_comments = re.compile(
    r"#[^\r\n]*|\"\"\"(?:[^\"\\]|\\.|\"(?!\"\"))*\"\"\"|'''(?:[^'\\]|\\.|'(?!''))*'''"
    r"|\"(?:[^\"\\\r\n]|\\(?:\r\n|.))*\"|'(?:[^'\\\r\n]|\\(?:\r\n|.))*'",
    re.DOTALL,
)


def parse(text: str) -> p.Program | None:
    """The loop program of `text` (no byte order mark), or None where CPython's parser does not serve."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = compile(text, "<galint>", "exec", ast.PyCF_ONLY_AST, dont_inherit=True)
            assert isinstance(tree, ast.Module)
            places = Places(text)
            body = _body(places, tree.body)
    except (SyntaxError, ValueError, RecursionError, MemoryError, Unsupported):
        return None
    return p.Program(body, _comments(places))


def _comments(c: Places) -> dict[int, str]:
    """Row → comment text without '#', stripped."""
    if "#" not in c.text:
        return {}
    if c.unsure:
        tokens = tokenize.generate_tokens(io.StringIO(c.text).readline)
        return {t.start[0]: t.string[1:].strip() for t in tokens if t.type == tokenize.COMMENT}
    out: dict[int, str] = {}
    for match in _literals_and_comments.finditer(c.text):
        word = match.group()
        if word[0] == "#":
            out[bisect_right(c.starts, match.start())] = word[1:].strip()
    return out


def _body(c: Places, nodes: list[ast.stmt]) -> p.Body:
    out: list[p.Stmt] = []
    for node in nodes:
        lower = _TABLE.get(type(node))
        if lower is not None:
            out.append(lower(c, node))
        elif type(node).__name__ != "TypeAlias":
            raise Unsupported
    return tuple(out)


# --- simple statements ---------------------------------------------------------------------------


def _expr(c: Places, node: ast.Expr) -> p.Stmt:
    return p.alone(c.span(node), expr(c, node.value))


def _assign(c: Places, node: ast.Assign) -> p.Stmt:
    targets = tuple([expr(c, target) for target in node.targets])
    return p.Assign(c.span(node), targets, expr(c, node.value))


def _aug_assign(c: Places, node: ast.AugAssign) -> p.Stmt:
    return p.AugAssign(c.span(node), expr(c, node.target), OPERATORS[type(node.op)], expr(c, node.value))


def _ann_assign(c: Places, node: ast.AnnAssign) -> p.Stmt:
    return p.AnnAssign(c.span(node), expr(c, node.target), expr(c, node.annotation), optional(c, node.value))


def _return(c: Places, node: ast.Return) -> p.Stmt:
    return p.Return(c.span(node), optional(c, node.value))


def _raise(c: Places, node: ast.Raise) -> p.Stmt:
    optional(c, node.cause)
    return p.Raise(c.span(node), optional(c, node.exc))


def _assert(c: Places, node: ast.Assert) -> p.Stmt:
    optional(c, node.msg)
    return p.Assert(c.span(node), expr(c, node.test))


def _del(c: Places, node: ast.Delete) -> p.Stmt:
    return p.Delete(c.span(node), tuple([expr(c, target) for target in node.targets]))


def _pass(c: Places, node: ast.Pass) -> p.Stmt:
    return p.Pass(c.span(node))


def _break(c: Places, node: ast.Break) -> p.Stmt:
    return p.Break(c.span(node))


def _continue(c: Places, node: ast.Continue) -> p.Stmt:
    return p.Continue(c.span(node))


def _global(c: Places, node: ast.Global) -> p.Stmt:
    return p.Scope(c.span(node), "global", tuple(node.names))


def _nonlocal(c: Places, node: ast.Nonlocal) -> p.Stmt:
    return p.Scope(c.span(node), "nonlocal", tuple(node.names))


def _import(c: Places, node: ast.Import) -> p.Stmt:
    return p.Import(c.span(node), tuple([(alias.name, alias.asname) for alias in node.names]))


def _import_from(c: Places, node: ast.ImportFrom) -> p.Stmt:
    names = tuple([(alias.name, alias.asname) for alias in node.names])
    return p.ImportFrom(c.span(node), node.module or "", node.level, names)


# --- compound statements -------------------------------------------------------------------------


def _if(c: Places, node: ast.If) -> p.Stmt:
    # A chain of `elif` nests to the right; a loop over it needs no deep recursion.
    chain: list[p.If] = []
    while True:
        span = c.header(c.start(node), c.end(node.test))
        chain.append(p.If(span, p.condition(expr(c, node.test)), _body(c, node.body), ()))
        below = node.orelse
        if len(below) != 1 or not isinstance(below[0], ast.If):
            break
        node = below[0]
    if len(chain) > MAX_ELIFS:
        raise Unsupported
    chain[-1].orelse = _body(c, node.orelse)
    for outer, inner in pairwise(chain):
        outer.orelse = (inner,)
    return chain[0]


def _for(c: Places, node: ast.For | ast.AsyncFor) -> p.Stmt:
    span = c.header(c.start(node), c.end(node.iter))
    target, source = expr(c, node.target), expr(c, node.iter)
    return p.For(span, target, source, _body(c, node.body), _body(c, node.orelse), type(node) is ast.AsyncFor)


def _while(c: Places, node: ast.While) -> p.Stmt:
    span = c.header(c.start(node), c.end(node.test))
    return p.While(span, expr(c, node.test), _body(c, node.body), _body(c, node.orelse))


def _with(c: Places, node: ast.With | ast.AsyncWith) -> p.Stmt:
    items: list[p.WithItem] = []
    for item in node.items:
        last = item.context_expr if item.optional_vars is None else item.optional_vars
        span = c.between(c.start(item.context_expr), c.end(last))
        items.append(p.WithItem(span, expr(c, item.context_expr), optional(c, item.optional_vars)))
    span = c.header(c.start(node), c.end(last))
    return p.With(span, tuple(items), _body(c, node.body), type(node) is ast.AsyncWith)


def _try(c: Places, node: Any) -> p.Stmt:
    start = c.start(node)
    span = c.header(start, start + 3)
    handlers = tuple([_handler(c, handler) for handler in node.handlers])
    return p.Try(span, _body(c, node.body), handlers, _body(c, node.orelse), _body(c, node.finalbody))


def _handler(c: Places, node: ast.ExceptHandler) -> p.Handler:
    start = c.start(node)
    last = start + 6 if node.type is None else c.match(_to_named, c.end(node.type))
    return p.Handler(c.header(start, last), optional(c, node.type), node.name, _body(c, node.body))


def _function(c: Places, node: ast.FunctionDef | ast.AsyncFunctionDef) -> p.Stmt:
    decorators = tuple([expr(c, decorator) for decorator in node.decorator_list])
    start = c.start(node)
    last = c.match(_to_name, start)
    given = node.args
    parts = [
        *given.posonlyargs, *given.args, given.vararg, *given.kwonlyargs, given.kwarg, *given.defaults,
        *given.kw_defaults, node.returns, *getattr(node, "type_params", ()),
    ]  # fmt: skip
    last = max([last, *[c.end(part) for part in parts if part is not None]])
    parameters = params(c, given)
    returns = optional(c, node.returns)
    outer, c.yields = c.yields, False
    inner = _body(c, node.body)
    generator, c.yields = c.yields, outer
    is_async = type(node) is ast.AsyncFunctionDef
    span = c.header(start, last)
    return p.FunctionDef(span, node.name, parameters, inner, decorators, returns, is_async, generator)


def _class(c: Places, node: ast.ClassDef) -> p.Stmt:
    decorators = tuple([expr(c, decorator) for decorator in node.decorator_list])
    start = c.start(node)
    last = c.match(_to_name, start)
    types = getattr(node, "type_params", ())
    last = max([last, *[c.end(part) for part in types]])
    bases: tuple[p.Arg, ...] = ()
    given = [*node.bases, *node.keywords]
    if given:
        bases = arguments(c, node, c.opened(last) if not types else c.opened(c.text.index("]", last) + 1))
        last = max(c.end(part) for part in given)
    return p.ClassDef(c.header(start, last), node.name, bases, _body(c, node.body), decorators)


def _match(c: Places, node: ast.Match) -> p.Stmt:
    span = c.header(c.start(node), c.end(node.subject))
    place = c.colon(c.end(node.subject))
    cases: list[p.Case] = []
    for case in node.cases:
        begin = c.match(_to_case, place)
        head = c.header(begin, c.end(case.guard if case.guard is not None else case.pattern))
        shape = _pattern(c, case.pattern)
        cases.append(p.Case(head, shape, optional(c, case.guard), _body(c, case.body)))
        place = c.end(case.body[-1])
    return p.Match(span, expr(c, node.subject), tuple(cases))


def _pattern(c: Places, node: Any) -> p.Pattern:
    span = c.span(node)
    match node:
        case ast.MatchValue(value=value):
            lowered = expr(c, value)
            return p.MatchValue(lowered.span, lowered)
        case ast.MatchSingleton(value=value):
            return p.MatchValue(span, p.Const(span, value))
        case ast.MatchSequence(patterns=patterns):
            return p.MatchSequence(span, tuple([_pattern(c, item) for item in patterns]))
        case ast.MatchStar(name=name):
            return p.MatchStar(span, name)
        case ast.MatchMapping(keys=keys, patterns=patterns, rest=rest):
            inner = tuple([_pattern(c, item) for item in patterns])
            return p.MatchMapping(span, tuple([expr(c, key) for key in keys]), inner, rest)
        case ast.MatchClass(cls=cls, patterns=patterns, kwd_attrs=names, kwd_patterns=named):
            keywords = tuple([(key, _pattern(c, item)) for key, item in zip(names, named, strict=True)])
            return p.MatchClass(span, expr(c, cls), tuple([_pattern(c, item) for item in patterns]), keywords)
        case ast.MatchAs(pattern=pattern, name=name):
            return p.MatchAs(span, None if pattern is None else _pattern(c, pattern), name)
        case ast.MatchOr(patterns=patterns):
            return p.MatchOr(span, tuple([_pattern(c, item) for item in patterns]))
        case _:
            raise Unsupported


_TABLE: dict[type, Callable[[Places, Any], p.Stmt]] = {
    ast.Expr: _expr, ast.Assign: _assign, ast.AugAssign: _aug_assign, ast.AnnAssign: _ann_assign,
    ast.Return: _return, ast.Raise: _raise, ast.Assert: _assert, ast.Delete: _del, ast.Pass: _pass,
    ast.Break: _break, ast.Continue: _continue, ast.Global: _global, ast.Nonlocal: _nonlocal,
    ast.Import: _import, ast.ImportFrom: _import_from, ast.If: _if, ast.For: _for, ast.AsyncFor: _for,
    ast.While: _while, ast.With: _with, ast.AsyncWith: _with, ast.Try: _try, ast.TryStar: _try,
    ast.FunctionDef: _function, ast.AsyncFunctionDef: _function, ast.ClassDef: _class, ast.Match: _match,
}  # fmt: skip
