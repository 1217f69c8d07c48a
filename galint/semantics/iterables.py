"""What is iterated over: ranges, iterators, itertools and progress bars."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from galint import program as p
from galint.run.frame import UserRaise
from galint.run.pull import pull
from galint.run.site import Site
from galint.run.values import (
    NONE,
    TRUE,
    Function,
    Instance,
    Iterable,
    Iterator,
    Lit,
    Mapping,
    Opaque,
    Range,
    Seq,
    Value,
)
from galint.semantics.types import Meaning

if TYPE_CHECKING:
    from galint.run.calls import Calls


def _range(m: Calls, s: Site) -> Value | None:
    role = _range_role(m, s)
    parts = [m.resolve(a) for a in s.args]
    if len(parts) == 3:
        return _stepped(m, s, parts, role)
    nodes = [a.value for a in s.node.args]
    _count_from_one(m, parts, nodes, role)
    numbers: list[Lit | None] = []
    for index, part in enumerate(parts):
        is_stop = index == len(parts) - 1
        node = nodes[index] if index < len(nodes) else None
        numbers.append(m.demand(part, role if is_stop else "counter", node))
    if any(n is None or n.value != int(n.value) for n in numbers if n is not None) or None in numbers:
        count = {"window": m.scenario.window, "length": m.scenario.length, "epochs": m.scenario.epochs}.get(role, 3)
        return Range(0, count, 1, frozenset({s.text}))
    if not numbers:
        return Opaque(s.text)
    ints = [int(n.value) for n in numbers if n is not None]
    last = numbers[-1]
    if role == "window" and last is not None and s.args and isinstance(m.resolve(s.args[-1]), Lit):
        m.odd_window(last)
        m.result.facts.setdefault("window_keys", set()).update(last.keys)
    if role == "epochs" and len(ints) < 3 and ints[-1] - (ints[0] if len(ints) == 2 else 0) == 1:
        last = numbers[-1]
        if last is not None and last.keys:
            ints[-1] += 1  # a default of one epoch hides what happens between epochs
    keys = frozenset().union(*(n.keys for n in numbers if n is not None))
    if len(ints) == 1:
        return Range(0, ints[0], 1, keys)
    return Range(ints[0], _far(m, ints, parts, role), 1, keys)


def _count_from_one(m: Calls, parts: list[Value], nodes: list[p.Expr], role: str) -> None:
    """`range(first, total + 1)` of an unseen `first` includes its total, so it counts from 1, or from where it was left."""
    if len(parts) != 2 or len(nodes) != 2 or role == "epochs" or not isinstance(nodes[1], p.BinOp):
        return
    first, more = parts[0], nodes[1].right
    if nodes[1].op != "+" or not isinstance(more, p.Const) or more.value != 1 or type(first) is not Opaque:
        return
    if first.deferred is None and not first.data and first.path not in m.result.known:
        m.result.known[first.path] = 1
        m.result.roles[first.path] = "counter"
        m.result.facts.setdefault("counted_elsewhere", set()).add(first.path)


def _far(m: Calls, ints: list[int], parts: list[Value], role: str) -> int:
    """An unknown stop counts from the start, so that the loop runs as often as its role asks."""
    if isinstance(parts[1], Opaque) and ints[1] <= ints[0]:
        return ints[0] + {"window": m.scenario.window, "length": m.scenario.length}.get(role, m.scenario.epochs)
    return ints[1]


def _range_role(m: Calls, s: Site) -> str:

    cached: dict[Any, str] = m.result.facts.setdefault("range_roles", {})
    known = cached.get(id(s.node))
    if known is not None:
        return known
    loop = m.static.loop_over.get(s.node)
    role = m._role_of(loop) if loop is not None else "length"
    if role == "idle" and isinstance(loop, p.For) and s.frame.yields is not None and m.driven_role(loop) == "window":
        role = "window"
    role = {"idle": "other", "other": "other"}.get(role, role)
    cached[id(s.node)] = role
    return role


def _stepped(m: Calls, s: Site, parts: list[Value], role: str) -> Value | None:
    """`range(start, stop, step)`: chunks of a batch when the bounds are not known."""
    start, stop, step = parts
    backwards = isinstance(step, Lit) and step.is_number and step.value < 0
    first = m.demand(start, role if backwards else "counter")
    if isinstance(stop, Lit) and isinstance(step, Lit) and first is not None and stop.is_number and step.is_number:
        if int(step.value) == 0:
            return None
        return Range(int(first.value), int(stop.value), int(step.value), stop.keys | step.keys)
    wanted = {"window": m.scenario.window, "length": m.scenario.length, "epochs": 2, "windows": 3}.get(role, 2)
    if isinstance(step, Lit) and step.is_number and isinstance(stop, Opaque):
        size = int(step.value)
        number = wanted * size
        m.result.known.setdefault(stop.path, number)
        m.result.roles.setdefault(stop.path, "batch")
        return Range(0, number, size, step.keys | {stop.path})
    if isinstance(stop, Lit) and stop.is_number and isinstance(step, Opaque):
        size = max(1, int(stop.value) // wanted)
        m.result.known.setdefault(step.path, size)
        m.result.roles.setdefault(step.path, "batch")
        return Range(0, int(stop.value), size, stop.keys | {step.path})
    if isinstance(stop, Opaque) and isinstance(step, Opaque):
        m.result.known.setdefault(step.path, 2)
        m.result.known.setdefault(stop.path, 2 * wanted)
        m.result.roles.setdefault(step.path, "batch")
        m.result.roles.setdefault(stop.path, "batch")
        return Range(0, 2 * wanted, 2, frozenset({stop.path, step.path}))
    return None


def _enumerate(m: Calls, s: Site) -> Value | None:
    source = s.arg(0, "iterable")
    return Iterable("enumerate", [source], s.arg(1, "start")) if source is not None else None


def _lazy(kind: str) -> Meaning:
    def meaning(m: Calls, s: Site) -> Value | None:
        return Iterable(kind, s.args)

    return meaning


def _filter(m: Calls, s: Site) -> Value | None:
    """`filter(f, xs)`: without what f is known to turn down."""
    if len(s.args) < 2:
        return None
    test, value = s.args
    if not isinstance(value, Seq):
        return value
    kept = [v for v in value.elts if m.truth(_passes(m, s, test, v)) is not False]
    return Seq(kept, "list", value.path)


def _passes(m: Calls, s: Site, test: Value, value: Value) -> Value:
    if isinstance(test, Lit) and test.value is None:
        return value
    return m.call_value(test, [value], {}, s.node, s.frame)


def _islice(m: Calls, s: Site) -> Value | None:
    """`start` holds the stop; a second argument is what is left out at the front."""
    if len(s.args) < 2:
        return None
    stop = s.args[1] if len(s.args) == 2 else s.args[2]
    front = s.args[1:2] if len(s.args) > 2 and not (isinstance(s.args[1], Lit) and not s.args[1].value) else []
    return Iterable("islice", [s.args[0], *front], None if isinstance(stop, Lit) and stop.value is None else stop)


def _repeat(m: Calls, s: Site) -> Value | None:
    value = s.arg(0, "object")
    return Iterable("repeat", [value], s.arg(1, "times")) if value is not None else None


def _count(m: Calls, s: Site) -> Value | None:
    return Iterable("count", [s.arg(0, "start") or Lit(0), s.arg(1, "step") or Lit(1)])


def first_arg(m: Calls, s: Site) -> Value | None:
    """The first argument itself: `tqdm(loader)`, `vars(args)`."""
    return s.args[0] if s.args else s.kwargs.get("iterable")


def _iter(m: Calls, s: Site) -> Value | None:
    if not s.args:
        return None
    value = s.args[0]
    if isinstance(value, Iterator):
        return value
    if isinstance(value, Instance):
        from galint.run.values import Function as Fn

        method = m.class_member(value.cls, "__iter__")
        if isinstance(method, Fn):
            return m.call_function(method, [value], {}, s.node)
    return Iterator(value)


def _next(m: Calls, s: Site) -> Value | None:
    if not s.args:
        return None
    it = s.args[0]
    if isinstance(it, Instance):
        method = m.class_member(it.cls, "__next__")
        if isinstance(method, Function):
            return _own_next(m, it, method, s)
    if isinstance(it, Opaque):
        held = it.items.get("__iterator__")
        if not isinstance(held, Iterator):
            held = it.items["__iterator__"] = Iterator(it)
        it = held
    from galint.run.values import GeneratorCall

    if isinstance(it, (GeneratorCall, Iterable)):
        it = _generator_iterator(m, it)
    if not isinstance(it, Iterator):
        return Opaque(s.text, data=True, born=m.token())
    if len(s.args) > 1:
        m.finite_iterators += 1
        item = pull(m, it)
        m.finite_iterators -= 1
        if type(item) is Opaque:
            item.items["__drawn__"] = TRUE  # the default says that there is no more: what was drawn is not it
        return item if item is not None else s.args[1]
    return _drawn(m, it, s.text)


def _own_next(m: Calls, it: Instance, method: Function, s: Site) -> Value:
    """What an own iterator gives. One that is at its end before it gave anything was filled out of sight."""
    try:
        item = m.call_function(method, [it], {}, s.node)
    except UserRaise as raised:
        if raised.name != "StopIteration" or "__given__" in it.attrs or len(s.args) > 1:
            raise
        return Opaque(s.text, data=True, born=m.token())
    it.attrs["__given__"] = TRUE
    return item


def _drawn(m: Calls, it: Iterator, text: str) -> Value:
    """The next element. What gives nothing at its first draw was filled out of sight; what runs dry later raises."""
    first = it.position == 0
    item = pull(m, it)
    if item is not None:
        return item
    if first and isinstance(m.resolve(it.source), (Seq, Mapping, Iterable)):
        return Opaque(text, data=True, born=m.token())
    raise UserRaise("StopIteration")


def _generator_iterator(m: Calls, call: Any) -> Iterator:
    held: dict[int, Iterator] = m.result.facts.setdefault("generators", {})
    if id(call) not in held:
        made = held[id(call)] = Iterator(call)
        m.result.facts.setdefault("kept", []).append(call)
        return made
    return held[id(call)]


def _none(m: Calls, s: Site) -> Value | None:
    return NONE


def _next_method(m: Calls, s: Site) -> Value | None:
    if isinstance(s.receiver, Iterator):
        return _drawn(m, s.receiver, s.text)
    return Opaque(s.text, data=True, born=m.token()) if s.receiver is not None else None


FUNCTIONS: dict[str, Meaning] = {
    "builtins.range": _range,
    "builtins.enumerate": _enumerate,
    "builtins.zip": _lazy("zip"),
    "builtins.map": _lazy("map"),
    "builtins.filter": _filter,
    "builtins.reversed": _lazy("reversed"),
    "builtins.iter": _iter,
    "builtins.next": _next,
    "itertools.cycle": _lazy("cycle"),
    "itertools.chain": _lazy("chain"),
    "itertools.repeat": _repeat,
    "itertools.count": _count,
    "itertools.islice": _islice,
    "tqdm.tqdm": first_arg,
    "tqdm.auto.tqdm": first_arg,
    "tqdm.notebook.tqdm": first_arg,
    "tqdm.trange": _range,
    "tqdm.auto.trange": _range,
    "rich.progress.track": first_arg,
    "progressbar.progressbar": first_arg,
    "*.tqdm": first_arg,
    "*.TQDM": first_arg,
    "*.trange": _range,
    "*.progress_bar": first_arg,
    "*.master_bar": first_arg,
}

METHODS: dict[tuple[str, str], Meaning] = {
    ("iterable", "next"): _next_method,
    ("iterable", "__next__"): _next_method,
    ("iterable", "set_description"): _none,
    ("iterable", "set_postfix"): _none,
    ("iterable", "update"): _none,
    ("loader", "next"): _next_method,
    ("*", "set_postfix"): _none,
    ("*", "set_description"): _none,
}
