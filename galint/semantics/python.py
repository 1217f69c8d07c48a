"""Python's builtins and the parts of its library that training loops are built from."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from galint.run.frame import UserRaise
from galint.run.iterate import drive, length_of, pull
from galint.run.site import Site
from galint.run.values import (
    FALSE,
    LONGEST,
    NONE,
    TRUE,
    Class,
    Context,
    External,
    Function,
    Instance,
    Iterable,
    Iterator,
    Lit,
    Mapping,
    Module,
    Opaque,
    Optimizer,
    Partial,
    Range,
    Seq,
    Tensor,
    Value,
)
from galint.semantics.types import Meaning

if TYPE_CHECKING:
    from galint.run.calls import Calls


_TYPES = frozenset({"int", "float", "str", "bool", "bytes", "list", "tuple", "dict", "set"})


def _len(m: Calls, s: Site) -> Value | None:
    return length_of(m, s.args[0]) if s.args else None


def _range(m: Calls, s: Site) -> Value | None:
    role = _range_role(m, s)
    parts = [m.resolve(a) for a in s.args]
    if len(parts) == 3:
        return _stepped(m, s, parts, role)
    nodes = [a.value for a in s.node.args]
    numbers: list[Lit | None] = []
    for index, part in enumerate(parts):
        is_stop = index == len(parts) - 1
        node = nodes[index] if index < len(nodes) else None
        numbers.append(m.demand(part, role if is_stop else "counter", node))
    if any(n is None or n.value != int(n.value) for n in numbers if n is not None) or None in numbers:
        if not parts:
            return Opaque(s.text)
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
    if len(ints) == 2:
        return Range(ints[0], _far(m, ints, parts, role), 1, keys)
    return None


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


def _first_arg(m: Calls, s: Site) -> Value | None:
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
            return m.call_function(method, [it], {}, s.node)
    if isinstance(it, Opaque):
        held = it.items.get("__iterator__")
        if not isinstance(held, Iterator):
            held = it.items["__iterator__"] = Iterator(it)
        it = held
    from galint.run.values import GeneratorCall

    if isinstance(it, GeneratorCall | Iterable):
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
    item = pull(m, it)
    if item is None:
        raise UserRaise("StopIteration")
    return item


def _generator_iterator(m: Calls, call: Any) -> Iterator:
    held: dict[int, Iterator] = m.result.facts.setdefault("generators", {})
    if id(call) not in held:
        made = held[id(call)] = Iterator(call)
        m.result.facts.setdefault("kept", []).append(call)
        return made
    return held[id(call)]


def _number(kind: str) -> Meaning:
    def meaning(m: Calls, s: Site) -> Value | None:
        if not s.args:
            return Lit(0)
        value = m.resolve(s.args[0])
        if isinstance(value, Lit):
            if value.is_number:
                number = value.value
                if kind == "int":
                    number = int(number)
                elif kind == "round":
                    number = round(number) if len(s.args) == 1 else number
                elif kind == "abs":
                    number = abs(number)
                elif kind == "float":
                    number = Fraction(number)
                elif kind == "ceil":
                    number = math.ceil(number)
                elif kind == "floor":
                    number = math.floor(number)
                return Lit(number, value.keys, value.moduli, value.born, value.text)
            if isinstance(value.value, str):
                try:
                    return Lit(int(value.value) if kind == "int" else Fraction(value.value), value.keys)
                except ValueError:
                    return None
        if isinstance(value, Tensor):
            return Opaque(f"{kind}({value.path})", data=True, born=value.born)
        if isinstance(value, Opaque):
            return value
        return None

    return meaning


def _bool(m: Calls, s: Site) -> Value | None:
    if not s.args:
        return FALSE
    truth = m.truth(s.args[0])
    if truth is None:
        return s.args[0]
    value = s.args[0]
    return Lit(truth, value.keys, value.moduli) if isinstance(value, Lit) else Lit(truth)


def _extreme(kind: str) -> Meaning:
    """`max(1, N)` and `min(N, x)` keep the identity of an unknown N."""

    def meaning(m: Calls, s: Site) -> Value | None:
        values = [m.resolve(a) for a in s.args]
        if len(values) == 1 and isinstance(values[0], Seq):
            values = [m.resolve(v) for v in values[0].elts]
        numbers = [v for v in values if isinstance(v, Lit) and v.is_number]
        unknown = [v for v in values if not (isinstance(v, Lit) and v.is_number)]
        if values and not unknown:
            pick = (max if kind == "max" else min)(numbers, key=lambda v: v.value)
            keys = frozenset().union(*(v.keys for v in numbers))
            moduli = tuple(q for v in numbers for q in v.moduli)
            return Lit(pick.value, keys, moduli[-4:], pick.born, pick.text)
        plain = [v for v in unknown if isinstance(v, Opaque) and not v.data]
        if len(unknown) == 1 and len(plain) == 1 and kind == "max" and all(v.value in {0, 1} for v in numbers):
            return plain[0]
        return None

    return meaning


def _sum(m: Calls, s: Site) -> Value | None:
    """The sum of known elements; an empty list stays unknown, for unknown code may have filled it."""
    value = s.args[0] if s.args else None
    if isinstance(value, Seq) and value.elts:
        start = s.arg(1, "start")
        total, *rest = value.elts if start is None else [start, *value.elts]
        for item in rest:
            total = m.binary("+", total, item, s.node)
        return total
    return value if isinstance(value, Tensor) else None


def _all_any(stop: bool) -> Meaning:
    def meaning(m: Calls, s: Site) -> Value | None:
        value = s.args[0] if s.args else None
        if not isinstance(value, Seq):
            return None
        truths = [m.truth(v) for v in value.elts]
        if stop in truths:
            return Lit(stop)
        if None in truths:
            return Opaque(s.text, data=any(m.is_data(v) for v in value.elts))
        return Lit(not stop)

    return meaning


def _isinstance(m: Calls, s: Site) -> Value | None:
    if len(s.args) < 2:
        return None
    value, kind = s.args
    names = _alternatives(kind)
    labels = {k.name.split(".")[-1] for k in names if isinstance(k, External)}
    classes = [k for k in names if isinstance(k, Class)]
    if isinstance(value, Instance) and classes:
        return TRUE if any(_inherits(value.cls, c) for c in classes) else Opaque(s.text)
    if isinstance(value, Module) and labels & {
        "DistributedDataParallel",
        "DDP",
        "DataParallel",
        "FullyShardedDataParallel",
    }:
        if value.wrap and "__guessed__" not in value.items:
            wrapped = {"ddp": {"DistributedDataParallel", "DDP"}, "dp": {"DataParallel"}}.get(
                value.wrap, {"FullyShardedDataParallel"}
            )
            return TRUE if labels & wrapped else FALSE
        return Opaque(s.text)
    named = len(labels) == len(names)
    if isinstance(value, Seq | Mapping):
        if value_kind(value) in labels:
            return TRUE
        return FALSE if named and labels <= _TYPES else Opaque(s.text)
    if isinstance(value, Lit) and value.value is not None and named and labels <= _TYPES:
        mine = {"float"} if isinstance(value.value, Fraction) else {t.__name__ for t in type(value.value).__mro__}
        return TRUE if mine & labels else FALSE
    if isinstance(value, Tensor) and "Tensor" in labels:
        return TRUE
    return Opaque(s.text, data=False)


def _alternatives(kind: Value) -> list[Value]:
    """The classes of `isinstance(x, (A, B))` and `isinstance(x, A | B)`."""
    if isinstance(kind, Seq):
        return [k for inner in kind.elts for k in _alternatives(inner)]
    return [kind]


def value_kind(value: Value) -> str:
    """The Python type name of a container value."""
    return value.kind if isinstance(value, Seq) else "dict"


def _inherits(cls: Class, wanted: Class) -> bool:
    return cls is wanted or any(isinstance(b, Class) and _inherits(b, wanted) for b in cls.bases)


def _getattr(m: Calls, s: Site) -> Value | None:
    if len(s.args) < 2 or not isinstance(s.args[1], Lit) or not isinstance(s.args[1].value, str):
        return None
    name = s.args[1].value
    value = s.args[0]
    if isinstance(value, External):
        return External(f"{value.name}.{name}")
    if isinstance(value, Opaque | Class):
        got = m.get_attr(value, name, s.node)
        if (
            len(s.args) > 2
            and isinstance(s.args[2], Lit)
            and isinstance(got, Opaque)
            and type(got) is Opaque
            and s.args[2].is_number
        ):
            default = s.args[2]
            if (
                got.path not in m.result.known
                and not isinstance(default.value, bool)
                and not got.kind
                and not got.attrs
            ):
                return m.soft(Lit(default.value, frozenset({got.path}), text=got.path))
        return got
    return None


def _setattr(m: Calls, s: Site) -> Value | None:
    if len(s.args) == 3 and isinstance(s.args[1], Lit) and isinstance(s.args[0], Opaque):
        s.args[0].attrs[str(s.args[1].value)] = s.args[2]
        return NONE
    return None


def _hasattr(m: Calls, s: Site) -> Value | None:
    if len(s.args) == 2 and isinstance(s.args[1], Lit):
        value, name = s.args[0], str(s.args[1].value)
        if isinstance(value, Instance) and (name in value.attrs or m.class_member(value.cls, name) is not None):
            return TRUE
        if isinstance(value, Module) and name == "module":
            return TRUE if value.wrap else Opaque(s.text)
        if isinstance(value, Module) and name == "no_sync":
            return TRUE if value.wrap in {"ddp", "fsdp"} else Opaque(s.text)
        if isinstance(value, Optimizer) and name in {"zero_grad", "step", "param_groups"}:
            return TRUE
    return Opaque(s.text)


def _collect(kind: str) -> Meaning:
    def meaning(m: Calls, s: Site) -> Value | None:
        if not s.args:
            return Seq([], kind)
        value = s.args[0]
        if isinstance(value, Seq):
            return Seq(list(value.elts), kind)
        if isinstance(value, Mapping):
            return Seq([Lit(k) for k in value.items], kind)
        if isinstance(value, Iterable) and value.kind == "zip" and all(isinstance(a, Seq) for a in value.args):
            out: list[Value] = []
            drive(m, value, lambda v: out.append(v), s.node, "comp")
            return Seq(out, kind)
        if isinstance(value, Range) and len(range(value.start, value.stop, value.step)) <= 64:
            return Seq([Lit(i, value.keys) for i in range(value.start, value.stop, value.step)], kind)
        if isinstance(value, Iterable):
            return value
        if isinstance(value, Opaque | Tensor):
            return value
        return None

    return meaning


def _print(m: Calls, s: Site) -> Value | None:
    return NONE


def _partial(m: Calls, s: Site) -> Value | None:
    return Partial(s.args[0], s.args[1:], dict(s.kwargs)) if s.args else None


def _null(m: Calls, s: Site) -> Value | None:
    return Context("null", None, s.span, {"as": s.args[0]} if s.args else {})


def _exit(m: Calls, s: Site) -> Value | None:
    raise UserRaise("SystemExit")


def _spawn(m: Calls, s: Site) -> Value | None:
    """`mp.spawn(worker, args=(…), nprocs=n)`: one worker's run, as rank 0."""
    worker = s.arg(0, "fn")
    if not isinstance(worker, Function):
        return None
    given = s.arg(1, "args")
    rest = list(given.elts) if isinstance(given, Seq) else []
    return m.call_value(worker, [Lit(0), *rest], {}, s.node, s.frame)


def _deque(m: Calls, s: Site) -> Value | None:
    return Seq(list(s.args[0].elts)) if s.args and isinstance(s.args[0], Seq) else Seq([])


def _defaultdict(m: Calls, s: Site) -> Value | None:
    return Mapping({}, f"#{m.tick()}")


def _dict(m: Calls, s: Site) -> Value | None:
    base = dict(s.args[0].items) if s.args and isinstance(s.args[0], Mapping) else {}
    return Mapping({**base, **s.kwargs}, f"#{m.tick()}")


def _namespace(m: Calls, s: Site) -> Value | None:
    out = Opaque(f"#{m.tick()}", "namespace")
    given = dict(s.kwargs)
    inner = given.pop("**", None)
    out.items["__defaults__"] = Mapping(dict(given))
    if isinstance(inner, Mapping):
        out.items["__defaults__"] = Mapping({**inner.items, **given})
    return out


# --- argparse ----------------------------------------------------------------------------------


def _parser(m: Calls, s: Site) -> Value | None:
    out = Opaque("parser", "argparser")
    out.items["__defaults__"] = Mapping({})
    return out


def _add_argument(m: Calls, s: Site) -> Value | None:
    parser = s.receiver
    if not isinstance(parser, Opaque):
        return NONE
    defaults = parser.items.setdefault("__defaults__", Mapping({}))
    flags = [a.value for a in s.args if isinstance(a, Lit) and isinstance(a.value, str)]
    if not flags or not isinstance(defaults, Mapping):
        return NONE
    long = next((f for f in flags if f.startswith("--")), flags[0])
    dest = s.kwargs.get("dest")
    name = str(dest.value) if isinstance(dest, Lit) and dest.value else long.lstrip("-").replace("-", "_")
    default = s.kwargs.get("default")
    action = s.kwargs.get("action")
    if isinstance(action, Lit) and isinstance(action.value, str) and action.value.startswith("store_"):
        return NONE
    if isinstance(default, Lit) and default.value is not None and not isinstance(default.value, bool):
        defaults.items[name] = default
    return NONE


def _parse_args(m: Calls, s: Site) -> Value | None:
    out = Opaque("args", "namespace")
    out.path = f"#{m.tick()}"
    if isinstance(s.receiver, Opaque) and "__defaults__" in s.receiver.items:
        out.items["__defaults__"] = s.receiver.items["__defaults__"]
    if s.name == "parse_known_args":
        return Seq([out, Opaque("unparsed")], "tuple")
    return out


def _set_defaults(m: Calls, s: Site) -> Value | None:
    if isinstance(s.receiver, Opaque):
        defaults = s.receiver.items.setdefault("__defaults__", Mapping({}))
        if isinstance(defaults, Mapping):
            defaults.items.update({k: v for k, v in s.kwargs.items() if isinstance(v, Lit) and v.value is not None})
    return NONE


def _group(m: Calls, s: Site) -> Value | None:
    return s.receiver


# --- containers --------------------------------------------------------------------------------


def _append(m: Calls, s: Site) -> Value | None:
    if isinstance(s.receiver, Seq) and s.args:
        if len(s.receiver.elts) < LONGEST:
            s.receiver.elts.insert(0 if s.name == "appendleft" else len(s.receiver.elts), s.args[0])
        if any(loop.cut or loop.role in {"idle", "other"} for loop in m.loops):
            s.receiver.open = True  # the loop was cut short, so the list is longer than it looks
        return NONE
    if isinstance(s.receiver, Opaque) and not s.receiver.data and s.args:
        held = Seq([s.args[0]])
        m.result.facts.setdefault("lists", {})[s.receiver.path] = held
        return NONE
    return NONE


def _extend(m: Calls, s: Site) -> Value | None:
    if isinstance(s.receiver, Seq) and s.args and isinstance(s.args[0], Seq) and len(s.receiver.elts) < LONGEST:
        s.receiver.elts += s.args[0].elts[:LONGEST]
    return NONE


def _clear(m: Calls, s: Site) -> Value | None:
    if isinstance(s.receiver, Seq):
        s.receiver.elts.clear()
    elif isinstance(s.receiver, Mapping):
        s.receiver.items.clear()
    return NONE


def _pop(m: Calls, s: Site) -> Value | None:
    if isinstance(s.receiver, Seq) and s.receiver.elts:
        index = m.resolve(s.args[0]) if s.args else Lit(0 if s.name == "popleft" else -1)
        if (
            isinstance(index, Lit)
            and isinstance(index.value, int)
            and -len(s.receiver.elts) <= index.value < len(s.receiver.elts)
        ):
            return s.receiver.elts.pop(index.value)
    if isinstance(s.receiver, Mapping) and s.args and isinstance(s.args[0], Lit):
        found = s.receiver.items.pop(s.args[0].value, None)
        return found if found is not None else s.arg(1)
    return None


def _items(m: Calls, s: Site) -> Value | None:
    if isinstance(s.receiver, Mapping):
        return Seq([Seq([Lit(k), v], "tuple") for k, v in s.receiver.items.items()])
    return None


def _values(m: Calls, s: Site) -> Value | None:
    return Seq(list(s.receiver.items.values())) if isinstance(s.receiver, Mapping) else None


def _keys(m: Calls, s: Site) -> Value | None:
    return Seq([Lit(k) for k in s.receiver.items]) if isinstance(s.receiver, Mapping) else None


def _get(m: Calls, s: Site) -> Value | None:
    if isinstance(s.receiver, Mapping) and s.args and isinstance(s.args[0], Lit):
        if s.args[0].value in s.receiver.items:
            return m.soft(s.receiver.items[s.args[0].value])
        default = s.arg(1, "default")
        if isinstance(default, Lit) and default.is_number:
            path = f"{s.receiver.path or 'config'}[{s.args[0].value!r}]"
            return m.soft(Lit(default.value, frozenset({path}), text=path))
        return default if default is not None else Opaque(s.text)
    if isinstance(s.receiver, Opaque) and s.args and isinstance(s.args[0], Lit) and not s.receiver.data:
        key = s.args[0].value
        found = s.receiver.items.get(key)
        if found is not None:
            return m.soft(found)
        default = s.arg(1, "default")
        path = f"{s.receiver.path}[{key!r}]"
        if isinstance(default, Lit) and default.is_number and not isinstance(default.value, bool):
            return m.soft(Lit(default.value, frozenset({path}), text=path))
        made = m.make_opaque(path, str(key))
        s.receiver.items[key] = made
        return made
    return None


def _update(m: Calls, s: Site) -> Value | None:
    if isinstance(s.receiver, Mapping):
        if s.args and isinstance(s.args[0], Mapping):
            s.receiver.items.update(s.args[0].items)
        s.receiver.items.update(s.kwargs)
        return NONE
    return None


def _setdefault(m: Calls, s: Site) -> Value | None:
    if isinstance(s.receiver, Mapping) and len(s.args) > 1 and isinstance(s.args[0], Lit):
        return s.receiver.items.setdefault(s.args[0].value, s.args[1])
    return None


def _none(m: Calls, s: Site) -> Value | None:
    return NONE


def _sort(m: Calls, s: Site) -> Value | None:
    """`sort` in place: only literals have a known order."""
    if isinstance(s.receiver, Seq):
        s.receiver.elts = _ordered(m, s.receiver.elts, s)
    return NONE


def _sorted(m: Calls, s: Site) -> Value | None:
    found = _collect("list")(m, s)
    return Seq(_ordered(m, found.elts, s)) if s.args and isinstance(found, Seq) else found


def _ordered(m: Calls, items: list[Value], s: Site) -> list[Value]:
    literals = [v for v in items if isinstance(v, Lit)]
    backwards = s.kwargs.get("reverse", FALSE)
    if "key" in s.kwargs or len(literals) < len(items) or m.truth(backwards) is None:
        return items
    try:
        return [*sorted(literals, key=lambda v: v.value, reverse=bool(m.truth(backwards)))]
    except TypeError:
        return items


def _reverse(m: Calls, s: Site) -> Value | None:
    if isinstance(s.receiver, Seq):
        s.receiver.elts.reverse()
    return NONE


def _copy(m: Calls, s: Site) -> Value | None:
    """`x.copy()` and `copy.copy(x)`: another container of the same elements."""
    value = s.receiver if s.receiver is not None else s.arg(0)
    if isinstance(value, Seq):
        out = Seq(list(value.elts), value.kind, value.path)
        out.open, out.length = value.open, value.length
        return out
    return Mapping(dict(value.items), value.path) if isinstance(value, Mapping) else value


def _next_method(m: Calls, s: Site) -> Value | None:
    if isinstance(s.receiver, Iterator):
        item = pull(m, s.receiver)
        if item is None:
            raise UserRaise("StopIteration")
        return item
    return Opaque(s.text, data=True, born=m.token()) if s.receiver is not None else None


def _distance(m: Calls, s: Site) -> Value | None:
    """`divmod(a, b)`."""
    if len(s.args) == 2:
        nodes = [a.value for a in s.node.args]
        return Seq([m.binary(op, s.args[0], s.args[1], s.node, nodes[1]) for op in ("//", "%")], "tuple")
    return None


FUNCTIONS: dict[str, Meaning] = {
    "builtins.len": _len,
    "builtins.range": _range,
    "builtins.enumerate": _enumerate,
    "builtins.zip": _lazy("zip"),
    "builtins.map": _lazy("map"),
    "builtins.filter": _filter,
    "builtins.reversed": _lazy("reversed"),
    "builtins.iter": _iter,
    "builtins.next": _next,
    "builtins.int": _number("int"),
    "builtins.float": _number("float"),
    "builtins.abs": _number("abs"),
    "builtins.round": _number("round"),
    "builtins.bool": _bool,
    "builtins.max": _extreme("max"),
    "builtins.min": _extreme("min"),
    "builtins.sum": _sum,
    "builtins.all": _all_any(False),
    "builtins.any": _all_any(True),
    "builtins.isinstance": _isinstance,
    "builtins.getattr": _getattr,
    "builtins.setattr": _setattr,
    "builtins.hasattr": _hasattr,
    "builtins.list": _collect("list"),
    "builtins.tuple": _collect("tuple"),
    "builtins.sorted": _sorted,
    "builtins.set": _collect("set"),
    "builtins.dict": _dict,
    "builtins.print": _print,
    "builtins.divmod": _distance,
    "builtins.exit": _exit,
    "builtins.quit": _exit,
    "builtins.vars": _first_arg,
    "sys.exit": _exit,
    "os._exit": _exit,
    "math.ceil": _number("ceil"),
    "math.floor": _number("floor"),
    "torch.multiprocessing.spawn": _spawn,
    "torch.multiprocessing.start_processes": _spawn,
    "torch_xla.distributed.xla_multiprocessing.spawn": _spawn,
    "functools.partial": _partial,
    "copy.copy": _copy,
    "itertools.cycle": _lazy("cycle"),
    "itertools.chain": _lazy("chain"),
    "itertools.repeat": _repeat,
    "itertools.count": _count,
    "itertools.islice": _islice,
    "contextlib.nullcontext": _null,
    "contextlib.suppress": _null,
    "collections.deque": _deque,
    "collections.defaultdict": _defaultdict,
    "collections.OrderedDict": _dict,
    "types.SimpleNamespace": _namespace,
    "argparse.Namespace": _namespace,
    "argparse.ArgumentParser": _parser,
    "configargparse.ArgumentParser": _parser,
    "easydict.EasyDict": _first_arg,
    "tqdm.tqdm": _first_arg,
    "tqdm.auto.tqdm": _first_arg,
    "tqdm.notebook.tqdm": _first_arg,
    "tqdm.trange": _range,
    "tqdm.auto.trange": _range,
    "rich.progress.track": _first_arg,
    "progressbar.progressbar": _first_arg,
    "*.tqdm": _first_arg,
    "*.trange": _range,
    "*.progress_bar": _first_arg,
    "*.master_bar": _first_arg,
    "builtins.Exception": lambda m, s: Opaque("Exception"),
}

METHODS: dict[tuple[str, str], Meaning] = {
    ("argparser", "add_argument"): _add_argument,
    ("argparser", "parse_args"): _parse_args,
    ("argparser", "parse_known_args"): _parse_args,
    ("argparser", "set_defaults"): _set_defaults,
    ("argparser", "add_argument_group"): _group,
    ("argparser", "add_mutually_exclusive_group"): _group,
    ("seq", "append"): _append,
    ("seq", "appendleft"): _append,
    ("seq", "extend"): _extend,
    ("seq", "clear"): _clear,
    ("seq", "pop"): _pop,
    ("seq", "popleft"): _pop,
    ("seq", "copy"): _copy,
    ("seq", "sort"): _sort,
    ("seq", "reverse"): _reverse,
    ("mapping", "items"): _items,
    ("mapping", "values"): _values,
    ("mapping", "keys"): _keys,
    ("mapping", "get"): _get,
    ("mapping", "update"): _update,
    ("mapping", "pop"): _pop,
    ("mapping", "clear"): _clear,
    ("mapping", "copy"): _copy,
    ("mapping", "setdefault"): _setdefault,
    ("opaque", "get"): _get,
    ("namespace", "get"): _get,
    ("iterable", "next"): _next_method,
    ("iterable", "__next__"): _next_method,
    ("iterable", "set_description"): _none,
    ("iterable", "set_postfix"): _none,
    ("iterable", "update"): _none,
    ("loader", "next"): _next_method,
    ("*", "set_postfix"): _none,
    ("*", "set_description"): _none,
}
