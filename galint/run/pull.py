"""`next()` in the abstract run: one element at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from galint import program as p
from galint.run.elements import length_of, param_of, renewed
from galint.run.frame import RunOver, Signal, UserRaise
from galint.run.generators import run_generator
from galint.run.values import GeneratorCall, Iterable, Iterator, Lit, Opaque, Range, Seq, Tensor, Value

if TYPE_CHECKING:
    from galint.run.execute import Execute


def counting_from(m: Execute, value: Iterable) -> tuple[int, int]:
    """Start and step of `itertools.count`."""
    first, step = (m.demand(v, "counter") for v in value.args)
    return (int(first.value) if first is not None else 0), (int(step.value) if step is not None else 1)


def pull(m: Execute, it: Iterator) -> Value | None:
    """The next element; None when the iterator is exhausted."""
    source = m.resolve(it.source)
    it.position += 1
    index = it.position - 1
    if isinstance(source, Seq):
        return source.elts[index] if index < len(source.elts) else None
    if isinstance(source, Range):
        numbers = range(source.start, source.stop, source.step)
        return Lit(numbers[index], source.keys) if index < len(numbers) else None
    if isinstance(source, Iterable):
        if source.kind == "repeat":
            times = m.demand(source.start, "length") if source.start is not None else None
            return source.args[0] if times is None or index < times.value else None
        if source.kind == "cycle" and source.args:
            inner = Iterator(source.args[0])
            size = m.resolve(length_of(m, source.args[0]))
            if (
                isinstance(size, Lit)
                and isinstance(size.value, int)
                and size.value > 0
                and not isinstance(source.args[0], Opaque)
            ):
                inner.position = index % int(size.value)
                return pull(m, inner)
            it.infinite = True
            return pull_from(m, it, source.args[0], index)
        if source.kind == "count":
            number, stride = counting_from(m, source)
            return Lit(number + index * stride)
        if source.kind == "enumerate":
            if it.stored is None:
                it.stored = [Iterator(source.args[0])]
            held = it.stored[0]
            item = pull(m, held) if isinstance(held, Iterator) else None
            start = m.demand(source.start, "counter") if source.start is not None else None
            base = int(start.value) if start is not None else 0
            return None if item is None else Seq([Lit(base + index, born=m.token()), item], "tuple")
        if source.kind == "zip":
            if it.stored is None:
                it.stored = [Iterator(v) for v in source.args]
            parts = [pull(m, h) for h in it.stored if isinstance(h, Iterator)]
            return None if any(q is None for q in parts) else Seq([q for q in parts if q is not None], "tuple")
        if source.args:
            return pull_from(m, it, source.args[0], index)
    if isinstance(source, GeneratorCall):
        return _pull_generator(m, it, source, index)
    if isinstance(source, Iterator):
        return pull(m, source)
    return pull_from(m, it, source, index)


def _pull_generator(m: Execute, it: Iterator, source: GeneratorCall, index: int) -> Value | None:
    """`next()` on a generator of the project: its first yields are computed ahead, without gradient effects."""
    if it.stored is None:
        it.stored = []
        if not m.static.tags(source.func.node) & {"backward", "step"}:
            held = it.stored

            def keep(value: Value) -> Signal | None:
                held.append(value)
                return Signal("break") if len(held) >= 2 else None

            saved, outer = m.fuel, source.func.closure.globals.vars
            shared = {name: outer[name] for name in _globals_of(source.func.node) if name in outer}
            try:
                m.fuel = min(saved, 1500)
                run_generator(m, source, keep)
            except UserRaise:
                pass
            except RunOver:
                if m.fuel > 0:
                    raise  # it is not the look ahead that took too long
            finally:
                m.fuel = saved - 50
                outer |= shared  # what it tells the program through globals, it tells later
    sample = it.stored[min(index, len(it.stored) - 1)] if it.stored else None
    return renewed(m, sample)


def _globals_of(func: p.FunctionDef | p.Lambda) -> list[str]:
    """The names that a function declares global."""
    if isinstance(func, p.Lambda):
        return []
    return [name for stmt in func.body if isinstance(stmt, p.Scope) and stmt.kind == "global" for name in stmt.names]


def pull_from(m: Execute, it: Iterator, source: Value, index: int) -> Value | None:
    """`next()` on something opaque: finite when the code handles exhaustion, endless otherwise."""
    finite = m.finite_iterators > 0 and not it.infinite
    if finite and isinstance(source, Opaque) and source.role != "infinite":
        wanted = m.demand(length_of(m, source), "length")
        if wanted is not None and index >= int(wanted.value):
            return None
    if isinstance(source, Tensor) and source.grad:
        return source.copy()
    if isinstance(source, Opaque) and (source.kind == "params" or source.role in {"param", "params"}):
        return param_of(m, source)
    path = source.path if isinstance(source, Opaque) else f"#{m.tick()}"
    return Opaque(f"{path}[{index}]", data=True, born=m.token())
