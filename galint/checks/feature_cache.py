"""Contrastive training that caches features: each backward is over the whole large batch, one part of it alive."""

from __future__ import annotations

from galint import program as p
from galint.checks.view import View
from galint.checks.windows import program_nodes
from galint.run.nodes import terminal


def caches_features(view: View) -> bool:
    """Whether the program joins a live part with the cached others: `cat(cached[:j] + [part] + cached[j + 1:])`
    or `cat([*cached[:j], part, *cached[j + 1:]])`, or leaves that to the package GradCache.

    The losses of such parts are N times the same loss, and their gradients add up to the large batch's (GradCache,
    Gao et al. 2021, https://arxiv.org/abs/2101.06983).
    """
    return any(
        isinstance(node, p.Call)
        and (
            terminal(node.func) in {"GradCache", "build_cache"}
            or (terminal(node.func) in {"cat", "concat", "concatenate"} and _joins(node))
        )
        for node in program_nodes(view)
    )


def _joins(call: p.Call) -> bool:
    parts: list[p.Expr] = [call.args[0].value] if call.args else []
    flat: list[p.Expr] = []
    while parts:
        part = parts.pop()
        if isinstance(part, p.BinOp) and part.op == "+":
            parts += [part.left, part.right]
        elif isinstance(part, p.Sequence) and any(isinstance(e, p.Starred) for e in part.elts):
            parts += [e.value if isinstance(e, p.Starred) else p.Sequence(e.span, "list", (e,)) for e in part.elts]
        else:
            flat.append(part)
    cached = any(isinstance(part, p.Subscript) and isinstance(part.index, p.Slice) for part in flat)
    return cached and any(isinstance(part, p.Sequence) for part in flat)
