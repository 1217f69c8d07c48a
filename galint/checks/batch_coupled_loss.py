"""GA502: a contrastive loss couples the samples of a batch, so accumulation is not the large batch."""

from __future__ import annotations

import re
from collections.abc import Iterator

from galint import program as p
from galint.checks.feature_cache import caches_features
from galint.checks.finding import Finding
from galint.checks.scaling import loop_around
from galint.checks.view import View
from galint.checks.windows import full_windows
from galint.run.nodes import terminal

CODE = "GA502"
WITNESS = "even"
_NAMED = re.compile(
    r"info_?nce|nt_?xent|contrastive_?loss|clip_?loss|sup_?con_?loss|multiple_?negatives|siglip_?loss", re.I
)
_BANK = re.compile(r"queue|memory_?bank|gather|grad_?cache|cached", re.I)


def check(view: View) -> Iterator[Finding]:
    """A loss over in-batch negatives inside the micro-batch loop of an accumulation window."""
    seen: set[object] = set()
    for window in full_windows(view):
        loop = loop_around(view, window.micros[-1])
        if loop is None or loop in seen:
            continue
        seen.add(loop)
        found = _coupled(view, loop)
        if found is None or any(_BANK.search(n.id) for n in view.static.walk(loop) if isinstance(n, p.Name)):
            continue
        if caches_features(view):
            return
        count = len(window.micros)
        yield Finding(
            CODE,
            found.span,
            f"this loss compares the samples of one micro-batch only: {count} micro-batches see 1/{count} of the "
            "large batch's negatives, and accumulation cannot add the rest",
            step=window.step,
            window=count,
            related=view.places(window.step),
            applied="",
            expected="",
        )
        return


def _coupled(view: View, loop: p.Node) -> p.Call | None:
    """The call of such a loss, in the loop or in a function that the loop calls directly."""
    bodies: list[p.Node] = [loop]
    for node in view.static.walk(loop):
        if isinstance(node, p.Call) and isinstance(node.func, p.Name):
            bodies += view.static.functions.get(node.func.id, ())
    for body in bodies:
        ranges = {
            t.id
            for n in view.static.walk(body)
            if isinstance(n, p.Assign) and _arange(n.value)
            for t in n.targets
            if isinstance(t, p.Name)
        }
        for node in view.static.walk(body):
            if not isinstance(node, p.Call):
                continue
            if _NAMED.search(terminal(node.func)) and node.args:
                return node
            if terminal(node.func) in {"cross_entropy", "criterion", "loss_fn"} and len(node.args) >= 2:
                target = node.args[1].value
                if (isinstance(target, p.Name) and target.id in ranges) or _arange(target):
                    return node
    return None


def _arange(value: p.Expr) -> bool:
    """`torch.arange(n)`, moved or cast: each sample's own position is its class."""
    while isinstance(value, p.Call) and isinstance(value.func, p.Attr) and value.func.name in {"to", "cuda", "long"}:
        value = value.func.value
    return isinstance(value, p.Call) and terminal(value.func) == "arange"
