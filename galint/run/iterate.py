"""The iteration protocol of the abstract run: every iterable is driven through a callback."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from galint import program as p
from galint.run.frame import Frame, GeneratorExit_, Signal, UserRaise
from galint.run.values import (
    NONE,
    Function,
    GeneratorCall,
    Instance,
    Iterable,
    Iterator,
    Lit,
    Mapping,
    Module,
    Opaque,
    Range,
    Seq,
    Tensor,
    Value,
)

if TYPE_CHECKING:
    from galint.run.execute import Execute

Each = Callable[[Value], Signal | None]
_IDLE = 3
_TRAINING = frozenset({"length", "window", "windows", "epochs"})
_SEGMENT = 400


def drive(m: Execute, value: Value, each: Each, node: p.Node, role: str) -> Signal | None:
    """Call `each` with every element; a signal from it ends the iteration and is returned."""
    value = m.resolve(value)
    if isinstance(value, Seq) and value.open and role in {"length", "window", "windows", "epochs"}:
        return _grown(m, value, each, node, role)
    if (
        isinstance(value, Seq | Mapping)
        and not (value.elts if isinstance(value, Seq) else value.items)
        and role in _TRAINING
    ):
        # A training loop over nothing is not what the program does: the container was filled out of sight.
        return _opaque(m, Opaque(value.path or f"#{m.tick()}", data=True), each, node, role)
    if isinstance(value, Seq):
        return _known(m, list(value.elts), each, role, value)
    if isinstance(value, Instance):
        return _object(m, value, each, node, role)
    if isinstance(value, Range):
        return _range(m, value, each, node, role)
    if isinstance(value, Mapping):
        return _known(m, [Lit(k) for k in value.items], each, role, value)
    if isinstance(value, GeneratorCall):
        return _generator(m, value, each)
    if isinstance(value, Iterable):
        return _lazy(m, value, each, node, role)
    if isinstance(value, Iterator):
        return _rest(m, value, each, node, role)
    if isinstance(value, Tensor) and value.grad:
        count = 1
        if role in _TRAINING:
            wanted = m.demand(Opaque(f"len({value.path})", data=True), role)
            count = int(wanted.value) if wanted is not None else 1
        return _known(m, [value.copy() for _ in range(count)], each, role, value)
    if isinstance(value, Tensor):
        return _opaque(m, Opaque(value.path, data=True, born=value.born, modules=value.modules), each, node, role)
    if isinstance(value, Module):
        return each(m.get_attr(value, "0", p.Name(node.span, "_")))
    if isinstance(value, Opaque):
        return _opaque(m, value, each, node, role)
    if isinstance(value, Lit) and isinstance(value.value, str):
        return _known(m, [Lit(c) for c in value.value[:_IDLE]], each, "idle", value)
    return _opaque(m, Opaque(f"#{m.tick()}"), each, node, role)


def _last(m: Execute, flag: bool) -> None:
    if m.loops:
        m.loops[-1].last = flag


def _known(m: Execute, items: list[Value], each: Each, role: str, source: Value) -> Signal | None:
    if role == "idle" and len(items) > 8:
        items = items[:_IDLE]
    for index, item in enumerate(items):
        _last(m, index == len(items) - 1)
        signal = each(item)
        if signal is not None:
            return signal
    return None


def _grown(m: Execute, value: Seq, each: Each, node: p.Node, role: str) -> Signal | None:
    """A list that was built by a loop cut short: as long as its role asks, with elements like the known ones."""
    wanted = m.demand(length_of(m, value), role)
    total = int(wanted.value) if wanted is not None else m.scenario.length
    for index in range(total):
        m.burn()
        _last(m, index == total - 1)
        sample = value.elts[index % len(value.elts)] if value.elts else None
        signal = each(_renew(m, sample))
        if signal is not None:
            return signal
    return None


def _range(m: Execute, value: Range, each: Each, node: p.Node, role: str) -> Signal | None:
    steps = range(value.start, value.stop, value.step) if value.step else range(0)
    total = len(steps)
    if total == 0 and role in _TRAINING:
        wanted = {"window": m.scenario.window, "length": m.scenario.length, "epochs": m.scenario.epochs}.get(role, 3)
        steps = range(value.start, value.start + wanted)
        total = wanted
    cap = {
        "idle": _IDLE,
        "build": 128,
        "comp": 64,
        "other": 8,
        "epochs": m.scenario.epochs,
        "windows": max(3, m.scenario.epochs),
    }.get(role)
    if role == "window" and total > 4 * _SEGMENT:
        cap = _SEGMENT
    for count, number in enumerate(steps):
        if cap is not None and count >= cap:
            m.result.facts["cut"] = True
            return None
        _last(m, count == total - 1)
        signal = each(Lit(number, value.keys))
        if signal is not None:
            return signal
    return None


def _generator(m: Execute, call: GeneratorCall, each: Each) -> Signal | None:
    """Run a generator function of the project; the loop's body runs at each of its yields."""
    func = call.func
    if len(m.call_stack) > 30 or m.call_stack.count(func.node) > 2:
        return None
    depth = len(m.loops)

    def at_yield(value: Value) -> Signal | None:
        # The generator's own loops are not loops around the body that consumes it.
        hidden, m.loops[depth:] = m.loops[depth:], []
        try:
            return each(value)
        finally:
            m.loops[depth:] = hidden

    frame = m.new_frame(func, call.args, call.kwargs)
    frame.yields = at_yield
    m.call_stack.append(func.node)
    try:
        m.run_body(func.node.body, frame)  # type: ignore[arg-type]
    except GeneratorExit_ as stop:
        return stop.signal
    except UserRaise as raised:
        if raised.name not in {"StopIteration", "IndexError"}:
            raise
    finally:
        m.call_stack.pop()
    return None


def _object(m: Execute, value: Instance, each: Each, node: p.Node, role: str) -> Signal | None:
    """An object of the project: its `__iter__` where it is a generator, something of unknown length otherwise."""
    method = m.class_member(value.cls, "__iter__")
    if isinstance(method, Function) and getattr(method.node, "is_generator", False):
        count = [0]

        def counted(item: Value) -> Signal | None:
            count[0] += 1
            return each(item)

        signal = _generator(m, GeneratorCall(method, [value], {}), counted)
        if count[0] or role not in _TRAINING:
            return signal
    holder = Opaque(value.path, "loader", data=False)
    holder.length = m.resolve(value.length) if value.length is not None else Opaque(f"len({value.path})")
    value.length = holder.length
    return _opaque(m, holder, each, node, role)


def length_of(m: Execute, value: Value) -> Value:
    """`len(value)` as a number where known, as an unknown setting otherwise."""
    if isinstance(value, Seq):
        if value.open:
            if value.length is None:
                value.length = Opaque(f"len({value.path or '#' + str(m.tick())})")
            return m.resolve(value.length)
        return Lit(len(value.elts))
    if isinstance(value, Mapping):
        return Lit(len(value.items))
    if isinstance(value, Range):
        return Lit(len(range(value.start, value.stop, value.step or 1)), value.keys)
    if isinstance(value, Iterable) and value.args:
        if value.kind in {"islice", "repeat"} and value.start is not None:
            return value.start
        return length_of(m, value.args[0])
    if isinstance(value, Lit) and isinstance(value.value, str):
        return Lit(len(value.value))
    if isinstance(value, Opaque):
        if value.length is None:
            made = Opaque(f"len({value.path})", data=value.data, born=value.born)
            value.length = made
        return m.resolve(value.length)
    if isinstance(value, Tensor):
        return Opaque(f"len({value.path})", data=True, born=value.born)
    return Opaque(f"len(#{m.tick()})")


def _opaque(m: Execute, value: Opaque, each: Each, node: p.Node, role: str) -> Signal | None:
    if value.kind == "params" or value.role in {"param", "params"}:
        return each(_param(m, value))
    if value.elements is not None:
        return _known(m, value.elements, each, role, value)
    if role in {"idle", "comp", "other", "data", "build"}:
        if m.loops and role != "data":
            m.loops[-1].cut = True
        if role == "data":
            total = 10**6
        elif role == "comp":
            known = m.resolve(length_of(m, value))
            total = int(known.value) if isinstance(known, Lit) and known.is_number else 1
        else:
            total = 1
    else:
        wanted = m.demand(length_of(m, value), {"micro": "window"}.get(role, role))
        total = int(wanted.value) if wanted is not None else m.scenario.length
    infinite = value.role == "infinite"
    index = 0
    while infinite or index < total:
        m.burn()
        _last(m, not infinite and index == total - 1)
        token = m.token()
        item = _element(m, value, index, token, role)
        signal = each(item)
        if signal is not None:
            return signal
        index += 1
        if index > _SEGMENT and not infinite and role == "data":
            return None
    return None


def _element(m: Execute, value: Opaque, index: int, token: int, role: str) -> Value:
    if not value.data and value.kind != "loader" and (role in {"idle", "comp", "other", "build"} or value.modules):
        known = value.items.get(("element", index))
        if known is None:
            known = Opaque(f"{value.path}[{index}]", modules=value.modules, role=value.role, born=value.born)
            value.items["element", index] = known
        return known
    if value.modules and not value.data and value.kind not in {"loader"}:
        made = Opaque(f"{value.path}[{index}]", data=False, born=token, modules=value.modules, role=value.role)
        return made
    if role in {"idle", "comp", "other", "build"} and not value.data and value.kind != "loader":
        return Opaque(f"{value.path}[{index}]", born=value.born)
    return Opaque(f"{value.path}[{index}]", data=True, born=token)


def _param(m: Execute, value: Opaque) -> Value:
    param = Opaque(f"{value.path}[·]", role="param", modules=value.modules)
    if value.path.endswith("named_parameters()"):
        return Seq([Opaque("name"), param], "tuple")
    return param


def _lazy(m: Execute, value: Iterable, each: Each, node: p.Node, role: str) -> Signal | None:
    if value.kind == "enumerate":
        start = m.demand(value.start, "counter") if value.start is not None else None
        base = start or Lit(0)
        count = [int(base.value)]

        def numbered(item: Value) -> Signal | None:
            number = Lit(count[0], base.keys)
            count[0] += 1
            return each(Seq([number, item], "tuple"))

        return drive(m, value.args[0], numbered, node, role)
    if value.kind == "zip":
        others = [Iterator(v) for v in value.args]
        lead = next((i for i, v in enumerate(value.args) if not _endless(v)), 0)

        def zipped(item: Value) -> Signal | None:
            parts: list[Value] = []
            for index, other in enumerate(others):
                if index == lead:
                    parts.append(item)
                    continue
                got = pull(m, other)
                if got is None:
                    return Signal("break")
                parts.append(got)
            return each(Seq(parts, "tuple"))

        return drive(m, value.args[lead], zipped, node, role)
    if value.kind == "chain":
        for part in value.args:
            signal = drive(m, part, each, node, role)
            if signal is not None:
                return signal
        return None
    if value.kind == "islice":
        wanted = (
            m.demand(value.start, role if role in {"window", "length"} else "length")
            if value.start is not None
            else None
        )
        first = m.demand(value.args[1], "counter") if len(value.args) > 1 else None
        skipped = max(int(first.value), 0) if first is not None else 0
        limit = int(wanted.value) - skipped if wanted is not None else m.scenario.length
        if value.start is None:
            limit = 10**9
        taken = [-skipped]

        def limited(item: Value) -> Signal | None:
            taken[0] += 1
            if taken[0] <= 0:
                return None
            _last(m, taken[0] == limit)
            signal = each(item)
            if signal is not None:
                return signal
            return Signal("break") if taken[0] >= limit else None

        if limit <= 0:
            return None
        signal = drive(m, value.args[0], limited, node, role)
        return None if taken[0] >= limit and signal is not None and signal.kind == "break" else signal
    if value.kind == "repeat" and value.start is not None:
        times = m.demand(value.start, role)
        total = int(times.value) if times is not None else m.scenario.length
        return _range(
            m,
            Range(0, total, 1, times.keys if times is not None else frozenset()),
            lambda _: each(value.args[0]),
            node,
            role,
        )
    if value.kind in {"cycle", "repeat", "count"}:
        source = value.args[0] if value.args else NONE
        if value.kind == "count":
            number, stride = _counted(m, value)
            while True:
                m.burn()
                signal = each(Lit(number))
                if signal is not None:
                    return signal
                number += stride
        while True:
            m.burn(3)
            signal = drive(m, source, each, node, role) if value.kind == "cycle" else each(source)
            if signal is not None:
                return signal
    if value.kind == "map":
        func = value.args[0]

        def mapped(item: Value) -> Signal | None:
            result = m.call_value(func, [item], {}, p.Call(node.span, p.Name(node.span, "map"), ()), Frame(None))
            return each(result)

        return drive(m, value.args[1], mapped, node, role)
    if value.kind == "reversed":
        source = value.args[0]
        if isinstance(source, Seq):
            return _known(m, list(reversed(source.elts)), each, role, source)
        if isinstance(source, Range):
            numbers = range(source.start, source.stop, source.step)[::-1]
            return _range(m, Range(numbers.start, numbers.stop, numbers.step, source.keys), each, node, role)
    return drive(m, value.args[0], each, node, role)


def _counted(m: Execute, value: Iterable) -> tuple[int, int]:
    """Start and step of `itertools.count`."""
    first, step = (m.demand(v, "counter") for v in value.args)
    return (int(first.value) if first is not None else 0), (int(step.value) if step is not None else 1)


def _endless(value: Value) -> bool:
    if isinstance(value, Iterable):
        if value.kind == "repeat":
            return value.start is None
        return value.kind in {"cycle", "count"} or (
            bool(value.args) and value.kind == "enumerate" and _endless(value.args[0])
        )
    return isinstance(value, Opaque) and value.role == "infinite"


def _rest(m: Execute, value: Iterator, each: Each, node: p.Node, role: str) -> Signal | None:
    if value.position == 0 and value.stored is None:
        return drive(m, value.source, each, node, role)
    while True:
        m.burn()
        item = pull(m, value)
        if item is None:
            return None
        signal = each(item)
        if signal is not None:
            return signal


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
            number, stride = _counted(m, source)
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

            saved = m.fuel
            try:
                m.fuel = min(saved, 1500)
                _generator(m, source, keep)
            except UserRaise:
                pass
            finally:
                m.fuel = saved - 50
    sample = it.stored[min(index, len(it.stored) - 1)] if it.stored else None
    return _renew(m, sample)


def _renew(m: Execute, sample: Value | None) -> Value:
    """A sample element as if it had been produced in this iteration."""
    if isinstance(sample, Seq):
        return Seq([_renew(m, v) for v in sample.elts], sample.kind)
    if isinstance(sample, Mapping):
        return Mapping({k: _renew(m, v) for k, v in sample.items.items()}, sample.path)
    if isinstance(sample, Lit) and not sample.is_number:
        return sample
    return Opaque(getattr(sample, "path", "") or f"#{m.tick()}", data=True, born=m.token())


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
        return _param(m, source)
    path = source.path if isinstance(source, Opaque) else f"#{m.tick()}"
    return Opaque(f"{path}[{index}]", data=True, born=m.token())
