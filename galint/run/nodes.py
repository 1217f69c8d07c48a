"""Small questions about the loop program's nodes: what is below one, its last name, whether a block leaves."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from galint import program as p


def walk(*tops: p.Node) -> Iterator[p.Node]:
    """Some nodes and everything below them, in the order of the text's tree; without recursion, for code nests deeply."""
    stack = list(reversed(tops))
    while stack:
        node = stack.pop()
        yield node
        stack += reversed(node.children())


def terminal(node: p.Expr | None) -> str:
    """The last name in an expression: `args.accum` → `accum`, `cfg["accum"]` → `accum`."""
    if isinstance(node, p.Name):
        return node.id
    if isinstance(node, p.Attr):
        return node.name
    if isinstance(node, p.Subscript):
        if isinstance(node.index, p.Const) and isinstance(node.index.value, str):
            return node.index.value
        return terminal(node.value)
    if isinstance(node, p.BoolOp) and node.op == "or" and all(isinstance(v, p.Const) for v in node.values[1:]):
        return terminal(node.values[0])  # `args.accum or 1`
    if isinstance(node, p.Call):
        inner = terminal(node.func)
        if inner in {"int", "max", "min", "round", "float", "abs"} and node.args:
            return next((t for a in node.args if (t := terminal(a.value))), inner)
        return inner
    return ""


_names = re.compile(r"[A-Za-z_]\w*").findall


@lru_cache(maxsize=4096)
def path_terminal(path: str) -> str:
    """The last name in a path's spelling."""
    names = _names(path)
    return names[-1] if names else ""


def bails(body: p.Body) -> bool:
    """True when a block always leaves: raise, return, continue, break or exit at its end."""
    if not body:
        return False
    last = body[-1]
    if isinstance(last, (p.Raise, p.Return, p.Continue, p.Break)):
        return True
    if isinstance(last, p.ExprStmt) and isinstance(last.value, p.Call):
        return terminal(last.value.func) in {"exit", "_exit", "quit", "abort"}
    while isinstance(last, p.If) and len(last.orelse) == 1 and isinstance(last.orelse[0], p.If):  # `elif`
        if not bails(last.body):
            return False
        last = last.orelse[0]
    if isinstance(last, p.If):
        return bool(last.orelse) and bails(last.body) and bails(last.orelse)
    return False


def raises(body: p.Body) -> bool:
    """True when a block always ends in an exception or in leaving the program."""
    if not body:
        return False
    last = body[-1]
    if isinstance(last, p.Raise):
        exc = last.exc.func if isinstance(last.exc, p.Call) else last.exc
        return terminal(exc) not in {"StopIteration", "IndexError", "StopAsyncIteration"}
    if isinstance(last, p.ExprStmt) and isinstance(last.value, p.Call):
        return terminal(last.value.func) in {"exit", "_exit", "quit", "abort"}
    while isinstance(last, p.If) and len(last.orelse) == 1 and isinstance(last.orelse[0], p.If):  # `elif`
        if not raises(last.body):
            return False
        last = last.orelse[0]
    if isinstance(last, p.If):
        return bool(last.orelse) and raises(last.body) and raises(last.orelse)
    return False


def ends_in_raise(body: p.Body) -> bool:
    """True for a run of early returns that ends in `raise`: one of the returns is the path."""
    return bool(body) and raises(body) and all(isinstance(s, (p.If, p.Raise, p.ExprStmt)) for s in body)


def asks_elements(node: p.Node) -> bool:
    """`torch.all(a == b)`, `(a > b).any()`: what is compared are the elements of tensors or arrays."""
    return isinstance(node, p.Call) and isinstance(node.func, p.Attr) and node.func.name in {"all", "any"}


def asks_length(test: p.Expr, name: str) -> bool:
    """`len(held) < n`, `len(self.held) == n`: whether a condition asks how long a list of this name is."""
    return re.search(rf"\blen\((\w+\.)*{re.escape(name)}\)", p.text(test)) is not None


def opposed(one: p.Expr, other: p.Expr) -> bool:
    """`i % n != 0` and `i % n == 0`, `not done` and `done`: whether just one of two conditions holds, by their spelling."""
    (asked, holds), (again, too) = _polarity(one), _polarity(other)
    return asked == again and holds != too


def _polarity(test: p.Expr) -> tuple[str, bool]:
    """What a condition asks, spelled in one way, and whether it holds where the answer is yes."""
    if isinstance(test, p.Unary) and test.op == "not":
        asked, holds = _polarity(test.operand)
        return asked, not holds
    if not isinstance(test, p.Compare) or len(test.ops) != 1:
        return p.text(test), True
    op, left, right = test.ops[0], p.text(test.left), p.text(test.comparators[0])
    if op in {"==", "!="} and right == "0":
        return left, op == "!="
    same = {"!=": "==", ">=": "<", ">": "<="}
    return f"{left} {same.get(op, op)} {right}", op not in same


def global_name(node: p.Expr) -> str:
    """The name that `globals()["name"]` or `getattr(sys.modules[__name__], "name")` looks up in its own file, else ""."""
    key: p.Expr | None = None
    if isinstance(node, p.Subscript) and p.text(node.value) == "globals()":
        key = node.index
    elif isinstance(node, p.Call) and p.text(node.func) == "getattr" and len(node.args) == 2:
        key = node.args[1].value if p.text(node.args[0].value) == "sys.modules[__name__]" else None
    return key.value if isinstance(key, p.Const) and isinstance(key.value, str) else ""
