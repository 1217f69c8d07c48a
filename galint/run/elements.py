"""What iterables are made of: how many elements they have, and what each of them is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from galint import program as p
from galint.run.nodes import terminal
from galint.run.values import Instance, Iterable, Lit, Mapping, Opaque, Range, Seq, Tensor, Value

if TYPE_CHECKING:
    from galint.run.execute import Execute
    from galint.run.static import Static


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


def unknown_length(m: Execute, value: Value) -> Opaque | None:
    """The length of something that a comprehension cannot be run out over; None where it can."""
    while isinstance(value, Iterable) and value.kind in {"enumerate", "zip"} and value.args:
        value = value.args[0]
    value = m.resolve(value)
    whole = isinstance(value, Seq) and not value.open
    if whole or not isinstance(value, (Seq, Opaque)) or getattr(value, "elements", None) is not None:
        return None
    if isinstance(value, Opaque) and (value.kind == "params" or value.role in {"param", "params"}):
        return None
    size = length_of(m, value)
    return size if isinstance(size, Opaque) else None


def element_of(m: Execute, value: Opaque, index: int, token: int, role: str) -> Value:
    """Element `index` of something opaque, drawn at `token`: data of its own, or a thing that stays the same."""
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


def param_of(m: Execute, value: Opaque) -> Value:
    """The one parameter that stands for all of `parameters()`, with its name for `named_parameters()`."""
    param = Opaque(f"{value.path}[·]", role="param", modules=value.modules)
    if value.path.endswith("named_parameters()"):
        return Seq([Opaque("name"), param], "tuple")
    return param


def renewed(m: Execute, sample: Value | None) -> Value:
    """A sample element as if it had been produced in this iteration."""
    if isinstance(sample, Seq):
        return Seq([renewed(m, v) for v in sample.elts], sample.kind)
    if isinstance(sample, Mapping):
        return Mapping({k: renewed(m, v) for k, v in sample.items.items()}, sample.path)
    if isinstance(sample, Lit) and not sample.is_number:
        return sample
    if isinstance(sample, Instance):
        made = Instance(sample.cls, sample.path)
        made.data, made.born = True, m.token()
        made.attrs = {name: renewed(m, value) for name, value in sample.attrs.items()}
        return made
    return Opaque(getattr(sample, "path", "") or f"#{m.tick()}", data=True, born=m.token())


def numbers_its_elements(loop: p.For, static: Static) -> str:
    """The first target of a loop over something unseen, where a remainder of it is asked for; else "".

    `for i, (x, y) in progress(loader)`: what `progress` is, is out of sight, and `i` can only be a number.
    """
    target = loop.target
    if not isinstance(target, p.Sequence) or len(target.elts) < 2 or not isinstance(loop.iter, p.Call):
        return ""
    first = target.elts[0]
    if not isinstance(first, p.Name) or terminal(loop.iter.func) in {"items", "zip", "enumerate"}:
        return ""
    asked = static.once(f"a remainder of {first.id} in {loop.span}", lambda: _asks_remainder(loop, first.id, static))
    return first.id if asked else ""


def _asks_remainder(loop: p.For, name: str, static: Static) -> bool:
    """Whether a loop divides a number, or what it makes of that number, with a remainder."""
    nodes = [n for stmt in loop.body for n in static.walk(stmt)]
    divided = {
        terminal(v)
        for n in nodes
        if isinstance(n, p.BinOp) and n.op == "%"
        for v in static.walk(n.left)
        if isinstance(v, p.Expr)
    }
    return name in divided or any(
        isinstance(v, p.Name) and v.id == name
        for n in nodes
        if isinstance(n, p.Assign) and any(terminal(t) in divided for t in n.targets)
        for v in static.walk(n.value)
    )


def numbered(name: str, value: Opaque, number: int, size: int) -> Seq:
    """An element of something unseen whose first part is its number; where the numbers begin, nobody knows."""
    rest = [Opaque(f"{value.path}[{i}]", data=True, born=value.born) for i in range(1, size)]
    return Seq([Lit(number, frozenset({f"{name}@start"}), born=value.born), *rest], "tuple")
