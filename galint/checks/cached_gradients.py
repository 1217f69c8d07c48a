"""Losses that are products with a gradient which was taken before: a part's own share of one loss of the whole batch."""

from __future__ import annotations

from galint import program as p
from galint.checks.view import View
from galint.checks.windows import program_nodes
from galint.run.nodes import terminal
from galint.run.static import Static
from galint.source import Span

_PRODUCTS = frozenset({"bmm", "dot", "einsum", "inner", "matmul", "mul", "multiply", "tensordot", "vdot"})
_KEEPS = frozenset({"cat", "chunk", "deque", "iter", "list", "split", "stack", "tensor_split", "tuple", "unbind"})
"""Functions whose first argument is a gradient where their result is one."""
_STARTS = frozenset({"backward", "manual_backward"})


def multiplies_gradient(view: View, backward: Span) -> bool:
    """Whether a backward starts from what is multiplied by a cached gradient, or is given it: `rows.backward(cached)`.

    The gradients of such parts add up to the whole batch's (GradCache, Gao et al. 2021,
    https://arxiv.org/abs/2101.06983).
    """
    call = next((c for c in view.static.calls if c.span == backward), None)
    if call is None:
        return False
    if not view.static.once("takes gradients", lambda: any(map(_taken, program_nodes(view)))):
        return False
    cached: frozenset[str] = view.static.once("cached gradients", lambda: _cached(view.static))
    if terminal(call.func) in _STARTS and len(call.args) == 1 + (p.text(call.func) == "torch.autograd.backward"):
        if _is_gradient(call.args[-1].value, cached):
            return True
    if _has_product(view.static, call, cached):
        return True
    started = {n.id for n in view.static.walk(call) if isinstance(n, p.Name)}
    around = [f for group in view.static.functions.values() for f in group if view.static.holds(f, call)]
    home = max(around, key=lambda f: f.span.row, default=None)
    nodes = view.static.walk(home) if home is not None else program_nodes(view)
    return any(
        isinstance(node, (p.Assign, p.AugAssign))
        and not started.isdisjoint(map(terminal, node.targets if isinstance(node, p.Assign) else (node.target,)))
        and _has_product(view.static, node.value, cached)
        for node in nodes
    )


def _has_product(static: Static, expr: p.Expr, cached: frozenset[str]) -> bool:
    for node in static.walk(expr):
        if isinstance(node, p.BinOp) and node.op in {"*", "@"}:
            sides = [node.left, node.right]
        elif isinstance(node, p.Call) and terminal(node.func) in _PRODUCTS:
            sides = [a.value for a in node.args]
            sides += [node.func.value] if isinstance(node.func, p.Attr) else []
        else:
            continue
        if any(_is_gradient(side, cached) for side in sides):
            return True
    return False


def _taken(node: p.Node) -> bool:
    """`rows.grad`, `torch.autograd.grad(loss, rows)`; one that keeps its graph is no constant."""
    if isinstance(node, p.Call) and terminal(node.func) == "grad" and isinstance(node.func, p.Attr):
        return not any(a.keyword == "create_graph" for a in node.args)
    return isinstance(node, p.Attr) and node.name == "grad" and p.text(node) != "torch.autograd.grad"


def _is_gradient(expr: p.Expr, cached: frozenset[str]) -> bool:
    """Whether an expression is a gradient, or a part or another shape of one."""
    while True:
        if _taken(expr) or p.text(expr) in cached:
            return True
        if isinstance(expr, p.Comp):
            expr = expr.elt
        elif isinstance(expr, p.Call) and expr.args and terminal(expr.func) in _KEEPS and _plain(expr.func):
            expr = expr.args[0].value
        elif isinstance(expr, p.Call) and isinstance(expr.func, p.Attr):
            expr = expr.func.value
        elif isinstance(expr, (p.Attr, p.Subscript)):
            expr = expr.value
        else:
            return False


def _plain(func: p.Expr) -> bool:
    """A function of no object: `list(…)`, `torch.cat(…)`."""
    return isinstance(func, p.Name) or (isinstance(func, p.Attr) and p.text(func.value) == "torch")


def _cached(static: Static) -> frozenset[str]:
    """The spellings of what holds gradients, as assignments, loops, lists, calls and what they return hand them on."""
    found: set[str] = set()
    size = -1
    while size < len(found):
        size = len(found)
        for node in static.everything():
            if isinstance(node, p.Assign):
                for target in node.targets:
                    _hand_on(static, target, node.value, found)
            elif isinstance(node, (p.For, p.CompFor)):
                _hand_on(static, node.target, _elements(node), found)
            elif isinstance(node, p.Call):
                if isinstance(node.func, p.Attr) and node.func.name == "append" and len(node.args) == 1:
                    _hand_on(static, node.func.value, node.args[0].value, found)
                for function in static.functions.get(terminal(node.func), ()):
                    names = [q.name for q in function.params if q.kind == "arg" and q.name not in {"self", "cls"}]
                    pairs = [(a.keyword, a.value) for a in node.args if a.keyword]
                    pairs += list(zip(names, (a.value for a in node.args if not a.keyword), strict=False))
                    found.update(name for name, value in pairs if name and _is_gradient(value, frozenset(found)))
    return frozenset(found)


def _elements(loop: p.For | p.CompFor) -> p.Expr:
    """What a loop's target is given: of `zip(a, b)` the pair of both, of `enumerate(a)` a number and `a`."""
    expr = loop.iter
    if isinstance(expr, p.Call) and terminal(expr.func) in {"enumerate", "zip"}:
        values = tuple(a.value for a in expr.args if not a.keyword)
        if terminal(expr.func) == "enumerate" and values:
            inner = _elements(p.CompFor(expr.span, loop.target, values[0], ()))
            return p.Sequence(expr.span, "tuple", (p.Const(expr.span, 0), inner))
        return p.Sequence(expr.span, "tuple", values)
    return expr


def _hand_on(static: Static, target: p.Expr, value: p.Expr, found: set[str], depth: int = 0) -> None:
    """Note what a target is called where it is given a gradient, piece by piece where both have pieces."""
    if isinstance(value, p.Call) and depth < 3:
        returns = [
            n.value
            for f in static.functions.get(terminal(value.func), ())
            for n in static.walk(f)
            if isinstance(n, p.Return) and n.value is not None
        ]
        for given in returns:
            _hand_on(static, target, given, found, depth + 1)
    if isinstance(target, p.Sequence) and isinstance(value, p.Sequence):
        for part, given in zip(target.elts, value.elts, strict=False):
            _hand_on(static, part, given, found, depth)
    elif isinstance(target, (p.Name, p.Attr)) and _is_gradient(value, frozenset(found)):
        found.add(p.text(target))
