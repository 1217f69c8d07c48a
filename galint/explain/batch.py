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
    loaders: list[tuple[str, p.Expr]] = []
    constants: dict[str, int] = {}
    for stmt in program.body:
        for node in static.walk(stmt):
            if isinstance(node, (p.Assign, p.AnnAssign)) and node.value is not None:
                targets = node.targets if isinstance(node, p.Assign) else (node.target,)
                for target in targets:
                    size = _size(node.value)
                    if size is not None:
                        loaders.append((terminal(target), size))
                    elif isinstance(node.value, p.Const) and isinstance(node.value.value, int):
                        constants[p.text(target)] = node.value.value
    names = _names(static, loop)
    mine = [size for name, size in loaders if name in names] or [size for _, size in loaders]
    spelled = {p.text(size) for size in mine}
    if len(spelled) != 1:
        return "", None
    text = spelled.pop()
    return text, _number(mine[0], text, constants, run)


def _size(value: p.Expr) -> p.Expr | None:
    """The `batch_size` of a loader's construction."""
    if not isinstance(value, p.Call) or terminal(value.func) not in _LOADERS:
        return None
    for arg in value.args:
        if arg.keyword == "batch_size":
            return arg.value
    plain = [a for a in value.args if a.keyword is None and not a.star]
    return plain[1].value if len(plain) > 1 else None


def _names(static: Static, loop: p.Node | None) -> set[str]:
    if not isinstance(loop, p.For):
        return set()
    return {terminal(node) for node in static.walk(loop.iter) if isinstance(node, (p.Name, p.Attr))}


def _number(size: p.Expr, text: str, constants: dict[str, int], run: RunResult) -> int | None:
    if isinstance(size, p.Const) and isinstance(size.value, int):
        return size.value
    known = run.known.get(text, constants.get(text))
    return known if isinstance(known, int) and not isinstance(known, bool) else None
