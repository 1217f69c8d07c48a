"""Calls that belong to the optimizer step though they are none: a moving average of the weights, a rank budget."""

from __future__ import annotations

import re
from functools import lru_cache

from galint import program as p
from galint.run.kinds import LOSS_NAME
from galint.run.nodes import bails
from galint.run.words import Words

_NAMED = re.compile(r"update|step$|ema|.*_ema$")
_AVERAGE = Words(
    r"(^|_)(ema|swa)(_|$)|^(model)?ema|ema(model)?$|average[rd]?_?(model|weights)|(model|weight)s?_?averag", re.I
)
_MIXES = re.compile(r"\.mul_\(.*\)\.add_\(|\.lerp_\(|^(\w+)(\.data)? = .*\b\1(\.data)?\b.*\*.* \+ .*\*")
"""What moves a weight a little towards another."""
_COUNT = re.compile(r"(^|_)(i|it|iter|itr|iteration|step|steps|idx|index)$", re.I)
_UPDATES = frozenset({"update", "step", "update_parameters", "update_ema", "ema_update", "update_average"})


def is_update_effect(call: p.Call) -> bool:
    """True for a call that belongs to the optimizer step: a moving average of the weights, AdaLoRA's rank budget."""
    func = call.func
    name = func.name if isinstance(func, p.Attr) else func.id if isinstance(func, p.Name) else ""
    if not _may(name):
        return False
    if name == "update_and_allocate":
        return True
    if isinstance(func, p.Attr) and name in _UPDATES:
        losses = [LOSS_NAME.search(_last(_measured(a.value))) for a in call.args]
        if _AVERAGE.search(_last(func.value)):
            # Not an average of the loss, or of what a call has measured: `noise_ema.update(*noise(gradients))`.
            return not any(losses[:1]) and not any(a.star and isinstance(a.value, p.Call) for a in call.args)
        return name not in {"update", "step"} and not any(losses)
    return bool(_AVERAGE.search(name)) and name.startswith(("update", "ema_step"))


def averages(loop: p.For) -> bool:
    """True for `for kept, new in zip(average.parameters(), model.parameters()): kept.mul_(m).add_(new, alpha=1 - m)`."""
    pairs = loop.iter
    if not isinstance(pairs, p.Call) or _last(pairs.func) != "zip" or len(pairs.args) != 2 or len(loop.body) > 3:
        return False
    if not all("parameters()" in p.text(a.value) for a in pairs.args):
        return False
    return any(_MIXES.search(_spelled(s)) is not None for s in loop.body)


def _spelled(stmt: p.Stmt) -> str:
    if isinstance(stmt, p.Assign):
        return f"{p.text(stmt.targets[0])} = {p.text(stmt.value)}"
    return p.text(stmt.value) if isinstance(stmt, p.ExprStmt) else ""


def counts_itself(call: p.Call, function: p.Node | None) -> bool:
    """Whether an averaging function has an interval of its own: it returns early, or is out of sight and given a count."""
    if function is not None:
        return bool(intervals(function))
    given = [a.keyword or _last(a.value) for a in call.args]
    return (isinstance(call.func, p.Name) or len(given) == 1) and any(_COUNT.search(name) for name in given)


def intervals(function: p.Node | None) -> list[str]:
    """The conditions on a remainder under which a function returns at once, or outside of which it does nothing."""
    body = function.body if isinstance(function, p.FunctionDef) else ()
    told = [s for s in body if not (isinstance(s, p.ExprStmt) and isinstance(s.value, p.Const))]
    tests = [
        p.text(s.test) for s in told if isinstance(s, p.If) and (bails(s.body) or (len(told) == 1 and not s.orelse))
    ]
    return [test for test in tests if "%" in test]


@lru_cache(maxsize=4096)
def _may(name: str) -> bool:
    return _NAMED.match(name) is not None


def _measured(node: p.Expr) -> p.Expr:
    """`loss` of `loss.detach().item()`."""
    while isinstance(node, p.Call) and isinstance(node.func, p.Attr) and not node.args:
        node = node.func.value
    return node


def _last(node: p.Expr) -> str:
    if isinstance(node, p.Call) and node.args and _last(node.func).startswith("unwrap"):
        return _last(node.args[0].value)  # `accelerator.unwrap_model(ema).update()`
    if isinstance(node, p.Attr) and node.name == "module":
        return _last(node.value)
    return node.name if isinstance(node, p.Attr) else node.id if isinstance(node, p.Name) else ""
