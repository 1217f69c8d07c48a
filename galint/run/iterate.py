"""The iteration protocol of the abstract run: every iterable is driven through a callback."""

from __future__ import annotations

from typing import TYPE_CHECKING

from galint import program as p
from galint.run.elements import element_of, length_of, param_of, renewed
from galint.run.frame import Frame, Signal
from galint.run.generators import Each, run_generator
from galint.run.pull import counting_from, pull
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
    Optimizer,
    Range,
    Seq,
    Tensor,
    Value,
)

if TYPE_CHECKING:
    from galint.run.execute import Execute

_IDLE = 3
_SPARSE = 7
"""Windows that a run passes where only every second of them trains some network."""
_TRAINING = frozenset({"length", "window", "windows", "epochs"})
_SEGMENT = 400
_BUILT = 128
"""Passes up to which a loop that fills a list is run out, so that the list has its length."""
_GATHERED = 64
"""Passes up to which a loop that only makes losses is run out, so that each has its part in the sum."""
_GROWN = 8
"""Passes of a longer one: its list says by its role how long it is."""


def drive(m: Execute, value: Value, each: Each, node: p.Node, role: str) -> Signal | None:
    """Call `each` with every element; a signal from it ends the iteration and is returned."""
    value = m.resolve(value)
    if role == "length" and len(m.loops) > 1 and m.counts_steps(m.loops[-2].node) and isinstance(value, (Seq, Opaque)):
        role = "epochs"  # the loop around counts: this one goes over parts of its pass, of which two tell everything
    if isinstance(value, Seq) and not value.elts and role in _TRAINING:
        # A training loop over nothing is not what the program does: the list was filled out of sight.
        value.open = True
    if isinstance(value, Seq) and value.open and role in _TRAINING:
        return _grown(m, value, each, node, role)
    if isinstance(value, Mapping) and not value.items and role in _TRAINING:
        return _opaque(m, Opaque(value.path or f"#{m.tick()}", data=True), each, node, role)
    if isinstance(value, Seq):
        if role == "optimizers":
            for index, item in enumerate(value.elts):
                if type(item) is Opaque and not item.kind:
                    value.elts[index] = item = m.make_optimizer(item.path, item.modules)
                if isinstance(item, Optimizer):
                    m.ledger(item)  # begun before any loss of another one
            each = _alone(m, each)
        return _known(m, list(value.elts), each, role, value)
    if isinstance(value, Instance):
        return _object(m, value, each, node, role)
    if isinstance(value, Range):
        return _range(m, value, each, node, role)
    if isinstance(value, Mapping):
        return _known(m, [Lit(k) for k in value.items], each, role, value)
    if isinstance(value, GeneratorCall):
        return run_generator(m, value, each)
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
    if role == "optimizers" and isinstance(value, Opaque) and value.elements is None:
        one = value.items.get("__one__")
        if one is None:
            one = value.items["__one__"] = m.make_optimizer(f"{value.path}[0]", value.modules)
        return _alone(m, each)(one)
    if isinstance(value, Opaque):
        return _opaque(m, value, each, node, role)
    if isinstance(value, Lit) and isinstance(value.value, str):
        return _known(m, [Lit(c) for c in value.value[:_IDLE]], each, "idle", value)
    return _opaque(m, Opaque(f"#{m.tick()}"), each, node, role)


def _alone(m: Execute, each: Each) -> Each:
    """In a loop over optimizers the losses of a pass are those of its optimizer."""

    def one(item: Value) -> Signal | None:
        if not isinstance(item, Optimizer):
            return each(item)
        before, m.toggled = m.toggled, item
        try:
            return each(item)
        finally:
            m.toggled = before

    return one


def _last(m: Execute, flag: bool) -> None:
    if m.loops:
        m.loops[-1].last = flag


def _known(m: Execute, items: list[Value], each: Each, role: str, source: Value) -> Signal | None:
    if role == "idle" and len(items) > 8:
        items = items[:_IDLE]
    if role in {"idle", "other", "build"} and m.loops and isinstance(source, Seq) and source.open:
        m.loops[-1].cut = True  # what the loop collects from it is as incomplete
    for index, item in enumerate(items):
        _last(m, index == len(items) - 1)
        signal = each(item)
        if signal is not None:
            return signal
    return None


def _grown(m: Execute, value: Seq, each: Each, node: p.Node, role: str) -> Signal | None:
    """A list that was built by a loop cut short: as long as its role asks, with elements like the known ones."""
    wanted = m.demand(length_of(m, value), role)
    total = _passes(m, role, int(wanted.value) if wanted is not None else m.scenario.length)
    for index in range(total):
        m.burn()
        _last(m, index == total - 1)
        sample = value.elts[index % len(value.elts)] if value.elts else None
        signal = each(renewed(m, sample))
        if signal is not None:
            return signal
    return None


def _passes(m: Execute, role: str, total: int) -> int:
    """Parts of an epoch that a list holds, such as files: one in the first epoch, two in the second.

    Two parts of each would hide a tail where the counter goes on from part to part, one would hide what leaks between parts.
    """
    if role != "epochs" or not m.loops or m.loops[-1].role != role:
        return total  # what a counting loop goes over in each pass, such as tasks
    epoch = next((loop for loop in m.loops[:-1] if loop.role == role), None)
    return total if epoch is None else min(total, epoch.iteration + 1)


def _range(m: Execute, value: Range, each: Each, node: p.Node, role: str) -> Signal | None:
    steps = range(value.start, value.stop, value.step) if value.step else range(0)
    total = len(steps)
    if total == 0 and role in _TRAINING:
        wanted = {"window": m.scenario.window, "length": m.scenario.length, "epochs": m.scenario.epochs}.get(role, 3)
        steps = range(value.start, value.start + wanted)
        total = wanted
    if total > 1 and _one_pass(node, value.start):
        steps, total = steps[:1], 1
    cap = {
        "idle": _IDLE,
        "build": _BUILT,
        "comp": 64,
        "other": 8,
        "epochs": m.scenario.epochs,
        "windows": max(3, m.scenario.epochs),
    }.get(role)
    if role == "gather" and total > _GATHERED:
        cap = _IDLE
    if role == "window" and total > 4 * _SEGMENT:
        cap = _SEGMENT
    if role == "build" and total > _BUILT:
        cap = _GROWN
        if m.loops:
            m.loops[-1].cut = True  # the lists it fills are longer than the run can show
    if m.loops and role in _TRAINING:
        m.loops[-1].passes = total if cap is None else min(total, cap)
    for count, number in enumerate(steps):
        if (
            cap is not None
            and count >= cap
            and not (role == "windows" and count < _SPARSE and "sparse" in m.result.facts)
        ):
            m.result.facts["cut"] = True
            return None
        _last(m, count == total - 1)
        signal = each(Lit(number, value.keys))
        if signal is not None:
            return signal
    return None


def _one_pass(node: p.Node, start: int) -> bool:
    """Whether the loop's body asserts that its number is still the first one: `assert i == 0`."""
    if not isinstance(node, p.For):
        return False
    wanted = f"{p.text(node.target)} == {start}"
    return any(isinstance(stmt, p.Assert) and p.text(stmt.test) == wanted for stmt in node.body)


def _object(m: Execute, value: Instance, each: Each, node: p.Node, role: str) -> Signal | None:
    """An object of the project: its `__iter__` where it is a generator, something of unknown length otherwise."""
    method = m.class_member(value.cls, "__iter__")
    if isinstance(method, Function) and getattr(method.node, "is_generator", False):
        count = [0]

        def counted(item: Value) -> Signal | None:
            count[0] += 1
            return each(item)

        signal = run_generator(m, GeneratorCall(method, [value], {}), counted)
        if count[0] or role not in _TRAINING:
            return signal
    holder = Opaque(value.path, "loader", data=False)
    holder.length = m.resolve(value.length) if value.length is not None else Opaque(f"len({value.path})")
    value.length = holder.length
    return _opaque(m, holder, each, node, role)


def _opaque(m: Execute, value: Opaque, each: Each, node: p.Node, role: str) -> Signal | None:
    if value.kind == "params" or value.role in {"param", "params"}:
        return each(param_of(m, value))
    if value.elements is not None:
        return _known(m, value.elements, each, role, value)
    if role in {"idle", "comp", "other", "data", "build"}:
        if m.loops and role not in {"data", "comp"}:  # a comprehension is no loop of its own: the last is around it
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
    if m.loops and not infinite and role in _TRAINING:
        m.loops[-1].passes = total
    if m.loops and isinstance(counted := value.items.get("__batches__"), Lit):
        m.result.facts.setdefault("batches", {})[m.loops[-1].span] = int(counted.value)
    index = 0
    while infinite or index < total:
        m.burn()
        _last(m, not infinite and index == total - 1)
        token = m.token()
        item = element_of(m, value, index, token, role)
        signal = each(item)
        if signal is not None:
            return signal
        index += 1
        if index > _SEGMENT and not infinite and role == "data":
            return None
    return None


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
            number, stride = counting_from(m, value)
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
