"""Lists, tuples, sets and dicts: how they are made, and what their methods do to them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from galint.run.iterate import drive
from galint.run.site import Site
from galint.run.values import FALSE, LONGEST, NONE, Iterable, Lit, Mapping, Opaque, Range, Seq, Tensor, Value
from galint.semantics.types import Meaning

if TYPE_CHECKING:
    from galint.run.calls import Calls


def _collect(kind: str) -> Meaning:
    def meaning(m: Calls, s: Site) -> Value | None:
        if not s.args:
            return Seq([], kind)
        value = s.args[0]
        if isinstance(value, Seq):
            out = Seq(list(value.elts), kind)
            out.open, out.length = value.open, value.length
            return out
        if isinstance(value, Mapping):
            return Seq([Lit(k) for k in value.items], kind)
        if isinstance(value, Iterable) and value.kind == "zip" and all(isinstance(a, Seq) for a in value.args):
            pairs: list[Value] = []
            drive(m, value, lambda v: pairs.append(v), s.node, "comp")
            return Seq(pairs, kind)
        if isinstance(value, Range) and len(range(value.start, value.stop, value.step)) <= 64:
            out = Seq([Lit(i, value.keys) for i in range(value.start, value.stop, value.step)], kind)
            # Samples that are numbered, to be shuffled: how many there are, the loop over their batches says.
            if value.keys and all(k.startswith("len(") and m.result.roles.get(k) == "length" for k in value.keys):
                out.open, out.length = True, Opaque(f"len({s.text})")
            return out
        if isinstance(value, Iterable):
            return value
        if isinstance(value, (Opaque, Tensor)):
            return value
        return None

    return meaning


def _deque(m: Calls, s: Site) -> Value | None:
    return Seq(list(s.args[0].elts)) if s.args and isinstance(s.args[0], Seq) else Seq([])


def _defaultdict(m: Calls, s: Site) -> Value | None:
    return Mapping({}, f"#{m.tick()}")


def _dict(m: Calls, s: Site) -> Value | None:
    base = dict(s.args[0].items) if s.args and isinstance(s.args[0], Mapping) else {}
    return Mapping({**base, **s.kwargs}, f"#{m.tick()}")


def _append(m: Calls, s: Site) -> Value | None:
    if isinstance(s.receiver, Seq) and s.args:
        if len(s.receiver.elts) < LONGEST:
            s.receiver.elts.insert(0 if s.name == "appendleft" else len(s.receiver.elts), s.args[0])
        if any(loop.cut or loop.role in {"idle", "other"} for loop in m.loops):
            s.receiver.open = True  # the loop was cut short, so the list is longer than it looks
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
        if isinstance(default, Lit) and isinstance(default.value, bool):
            made.items["__default__"] = default
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


def _sort(m: Calls, s: Site) -> Value | None:
    """`sort` in place: only literals have a known order."""
    if isinstance(s.receiver, Seq):
        s.receiver.elts = _ordered(m, s.receiver.elts, s)
    return NONE


def _sorted(m: Calls, s: Site) -> Value | None:
    found = _collect("list")(m, s)
    if s.args and isinstance(found, Seq):
        found.elts = _ordered(m, found.elts, s)
    return found


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


FUNCTIONS: dict[str, Meaning] = {
    "builtins.list": _collect("list"),
    "builtins.tuple": _collect("tuple"),
    "builtins.sorted": _sorted,
    "builtins.set": _collect("set"),
    "builtins.dict": _dict,
    "copy.copy": _copy,
    "collections.deque": _deque,
    "collections.defaultdict": _defaultdict,
    "collections.OrderedDict": _dict,
}

METHODS: dict[tuple[str, str], Meaning] = {
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
}
