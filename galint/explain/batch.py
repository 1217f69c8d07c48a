"""How many samples one optimizer step stands for, as far as the code says."""

from __future__ import annotations

from galint import program as p
from galint.explain.model import EffectiveBatch
from galint.run.facts import RunResult
from galint.run.nodes import terminal
from galint.run.static import Static

_LOADERS = {"DataLoader", "StatefulDataLoader", "create_loader"}
_AVERAGED = {"ddp", "fsdp", "fsdp2", "apex-ddp"}


def effective(
    static: Static, program: p.Program, run: RunResult, loop: p.Node | None, n: int, label: str
) -> EffectiveBatch:
    """The effective batch of a loop whose windows have `n` micro-batches."""
    spelled, size = _micro_batch(static, program, run, loop)
    ranks = any(getattr(m, "wrap", "") in _AVERAGED for m in run.modules.values())
    return EffectiveBatch(spelled, size, n, label, ranks)


def _micro_batch(static: Static, program: p.Program, run: RunResult, loop: p.Node | None) -> tuple[str, int | None]:
    """(spelling, number) of the batch size of the loader that the loop goes over."""
    loaders: list[tuple[str, p.Expr | None]] = []
    constants: dict[str, int] = {}
    for stmt in program.body:
        for node in static.walk(stmt):
            if isinstance(node, (p.Assign, p.AnnAssign)) and node.value is not None:
                targets = node.targets if isinstance(node, p.Assign) else (node.target,)
                for target in targets:
                    if isinstance(node.value, p.Call) and terminal(node.value.func) in _LOADERS:
                        loaders.append((terminal(target), _size(node.value)))
                    elif isinstance(node.value, p.Const) and isinstance(node.value.value, int):
                        constants[p.text(target)] = node.value.value
    names = _names(static, loop)
    mine = [size for name, size in loaders if name in names] or [size for _, size in loaders]
    sizes = [size for size in mine if size is not None]
    spelled = {p.text(size) for size in sizes}
    if len(spelled) != 1 or len(sizes) < len(mine):
        return "", None
    text = spelled.pop()
    return text, _number(sizes[0], text, constants, run)


def _size(call: p.Call) -> p.Expr | None:
    """The `batch_size` of a loader's construction; None where its data set or its sampler makes the batches."""
    plain = [a for a in call.args if a.keyword is None and not a.star]
    given = [a.value for a in call.args if a.keyword == "batch_size"] or [a.value for a in plain[1:2]]
    if not given or (isinstance(given[0], p.Const) and given[0].value is None):
        return None
    return given[0]


def _names(static: Static, loop: p.Node | None) -> set[str]:
    if not isinstance(loop, p.For):
        return set()
    return {terminal(node) for node in static.walk(loop.iter) if isinstance(node, (p.Name, p.Attr))}


def _number(size: p.Expr, text: str, constants: dict[str, int], run: RunResult) -> int | None:
    if isinstance(size, p.Const) and isinstance(size.value, int):
        return size.value
    known = run.known.get(text, constants.get(text))
    return known if isinstance(known, int) and not isinstance(known, bool) else None
